/**
 * Reads the outside of key material before OpenSSL does: which kind it is, and what opening it would cost.
 * An encrypted key says itself how long its password is to be stretched; V8's time limit cannot stop that.
 */
import { refuse } from './answer-crypto-frames.ts';

export type KeyStructure = 'pkcs8' | 'pkcs1' | 'sec1' | 'spki' | 'certificate';

/** One key as bytes, or a PEM text of the older encryption, whose password is hashed once. */
export type KeyBlock =
  | { readonly structure: KeyStructure; readonly isPrivate: boolean; readonly der: Buffer }
  | { readonly structure: 'legacy'; readonly isPrivate: true; readonly pem: string };

const LABELS: Readonly<Record<string, readonly [KeyStructure, boolean]>> = {
  'PRIVATE KEY': ['pkcs8', true],
  'ENCRYPTED PRIVATE KEY': ['pkcs8', true],
  'RSA PRIVATE KEY': ['pkcs1', true],
  'EC PRIVATE KEY': ['sec1', true],
  'PUBLIC KEY': ['spki', false],
  'RSA PUBLIC KEY': ['pkcs1', false],
  CERTIFICATE: ['certificate', false],
};
const BEGIN = '-----BEGIN ';
const DASHES = '-----';
const BLOCKS_MAX = 16;
const LEGACY_BODY =
  /^\r?\nProc-Type: 4,ENCRYPTED\r?\nDEK-Info: [A-Z0-9-]{1,32},[0-9A-Fa-f]{1,64}\r?\n\r?\n[A-Za-z0-9+/=\r\n]+$/;
const BASE64_BODY = /^[A-Za-z0-9+/=\s]+$/;
/** About half a second of SHA-256; OpenSSL writes 2,048, password managers some 600,000. */
const STRETCH_ROUNDS_MAX = 2_000_000;
/** 1.3.6.1.4.1.11591.4.11: its cost is a product of three numbers; nobody needs it here. */
const SCRYPT_OID = Buffer.from('06092b06010401da47040b', 'hex');
const INTEGER = 0x02;
const SEQUENCE = 0x30;
/** Numbers, texts of bytes, nothing, and names of algorithms. */
const PRIMITIVES: ReadonlySet<number> = new Set([INTEGER, 0x04, 0x05, 0x06]);
const DEPTH_MAX = 8;

/** The first key or certificate of a PEM text. */
export function readPem(text: string): KeyBlock {
  let at = 0;
  for (let count = 0; count < BLOCKS_MAX; count += 1) {
    const begin = text.indexOf(BEGIN, at);
    const labelEnd = text.indexOf(DASHES, begin + BEGIN.length);
    if (begin < 0 || labelEnd < 0) break;
    const label = text.slice(begin + BEGIN.length, labelEnd);
    const end = text.indexOf(`${DASHES}END ${label}${DASHES}`, labelEnd);
    if (end < 0) break;
    const block = blockOf(label, text.slice(labelEnd + DASHES.length, end));
    if (block !== undefined) return block;
    at = end + DASHES.length;
  }
  return unsupported();
}

function blockOf(label: string, body: string): KeyBlock | undefined {
  const [structure, isPrivate] = (Object.hasOwn(LABELS, label) && LABELS[label]) || [];
  if (structure === undefined || isPrivate === undefined) return undefined;
  if (body.includes(':')) {
    if (!isPrivate || structure === 'pkcs8' || !LEGACY_BODY.test(body)) return unsupported();
    const pem = `${BEGIN}${label}${DASHES}${body}${DASHES}END ${label}${DASHES}\n`;
    return { structure: 'legacy', isPrivate, pem };
  }
  if (!BASE64_BODY.test(body)) return unsupported();
  return { structure, isPrivate, der: Buffer.from(body, 'base64') };
}

function unsupported(): never {
  return refuse('ERR_OSSL_UNSUPPORTED', 'The key is not in a supported format.');
}

/**
 * Throws unless `der` is a private key in clear, or one whose encryption asks for bounded work. Anything
 * that this reader does not understand is refused, so OpenSSL never sees what was not judged.
 */
export function assertCheapToOpen(der: Buffer): void {
  const outer = readElement(der, 0);
  if (outer.tag !== SEQUENCE) unsupported();
  const first = readElement(der, outer.start);
  if (first.tag === INTEGER) return;
  if (first.tag !== SEQUENCE) unsupported();
  const algorithm = der.subarray(first.start, first.end);
  if (algorithm.includes(SCRYPT_OID)) unsupported();
  assertSmallNumbers(algorithm, 0);
}

function assertSmallNumbers(der: Buffer, depth: number): void {
  if (depth > DEPTH_MAX) unsupported();
  for (let at = 0; at < der.length; ) {
    const { tag, start, end } = readElement(der, at);
    if (tag === SEQUENCE) assertSmallNumbers(der.subarray(start, end), depth + 1);
    else if (!PRIMITIVES.has(tag)) unsupported();
    else if (tag === INTEGER && !isSmall(der.subarray(start, end))) {
      refuse('ERR_OUT_OF_RANGE', 'The key asks for more work than a script may do.', RangeError);
    }
    at = end;
  }
}

function isSmall(bytes: Buffer): boolean {
  return (
    bytes.length > 0 && bytes.length <= 4 && bytes.readUIntBE(0, bytes.length) <= STRETCH_ROUNDS_MAX
  );
}

/** Definite lengths of at most three bytes, low tag numbers: all that a key may have. */
function readElement(der: Buffer, at: number): { tag: number; start: number; end: number } {
  const [tag, length] = [der[at], der[at + 1]];
  if (tag === undefined || length === undefined || (tag & 0x1f) === 0x1f) return unsupported();
  const more = length < 0x80 ? 0 : length & 0x7f;
  if (length === 0x80 || more > 3 || at + 2 + more > der.length) return unsupported();
  const size = more === 0 ? length : der.readUIntBE(at + 2, more);
  const start = at + 2 + more;
  return start + size <= der.length ? { tag, start, end: start + size } : unsupported();
}
