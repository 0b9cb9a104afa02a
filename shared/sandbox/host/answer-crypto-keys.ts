/**
 * Keys of scripts: read from PEM, DER or JWK, written, generated. Keys are bytes and nothing else: no path,
 * no URL, no engine; kinds and sizes are bounded because the work with them is.
 */
import crypto, { type KeyObject } from 'node:crypto';
import {
  assertCheapToOpen,
  type KeyBlock,
  type KeyStructure,
  readPem,
} from './answer-crypto-der.ts';
import { digestName } from './answer-crypto-digests.ts';
import {
  type Answer,
  integerOf,
  type Json,
  type Question,
  refuse,
  textOrNone,
  wrongArgument,
} from './answer-crypto-frames.ts';

/** A PEM text of RSA with 8,192 bits has 6.5 KB; a certificate more, a chain much more. */
const MATERIAL_BYTES_MAX = 32 * 1024;
const PASSPHRASE_BYTES_MAX = 1024;
/** To use; one operation with a private key of this size takes some 40 ms. */
const RSA_BITS_MAX = 8192;
/** To generate: one to three seconds. */
const RSA_BITS_GENERATED_MAX = 4096;
const RSA_BITS_MIN = 512;
const EXPONENTS = [3, 17, 65_537] as const;
const KINDS = ['rsa', 'rsa-pss', 'ec', 'ed25519', 'ed448', 'x25519', 'x448'] as const;
const JWK_MEMBERS = ['kty', 'crv', 'x', 'y', 'd', 'n', 'e', 'p', 'q', 'dp', 'dq', 'qi'] as const;
const EXPORT_CIPHER = /^(?:aes-(?:128|192|256)-cbc|aes(?:128|192|256)|des-ede3-cbc)$/;

/**
 * The private key at `value` (`{format, type}`), its material at piece `piece`, its password after it.
 */
export function privateKey(question: Question, value: number, piece: number): KeyObject {
  const passphrase = question.bytesOrNone(piece + 1);
  if (passphrase !== undefined && passphrase.length > PASSPHRASE_BYTES_MAX) return wrongArgument();
  const secret = passphrase === undefined ? {} : { passphrase };
  if (question.option(value, 'format') === 'jwk') {
    return bounded(
      crypto.createPrivateKey({ key: jwkOf(material(question, piece)), format: 'jwk' }),
    );
  }
  return openPrivate(
    blockOf(question, value, piece, true),
    secret,
    question.option(value, 'format'),
  );
}

/** As `privateKey`; the public half when it is a private key. */
export function publicKey(question: Question, value: number, piece: number): KeyObject {
  if (question.option(value, 'format') === 'jwk') {
    return bounded(
      crypto.createPublicKey({ key: jwkOf(material(question, piece)), format: 'jwk' }),
    );
  }
  const block = blockOf(question, value, piece, false);
  if (block.isPrivate) return crypto.createPublicKey(privateKey(question, value, piece));
  if (block.structure === 'certificate')
    return bounded(new crypto.X509Certificate(block.der).publicKey);
  const type = block.structure === 'pkcs1' ? 'pkcs1' : 'spki';
  return bounded(crypto.createPublicKey({ key: block.der, format: 'der', type }));
}

function openPrivate(block: KeyBlock, secret: { passphrase?: Buffer }, format: unknown): KeyObject {
  if (!block.isPrivate) return wrongKind(format);
  if (block.structure === 'legacy') {
    return bounded(crypto.createPrivateKey({ key: block.pem, format: 'pem', ...secret }));
  }
  assertCheapToOpen(block.der);
  const type =
    block.structure === 'pkcs1' || block.structure === 'sec1' ? block.structure : 'pkcs8';
  return bounded(crypto.createPrivateKey({ key: block.der, format: 'der', type, ...secret }));
}

function blockOf(
  question: Question,
  value: number,
  piece: number,
  wantsPrivate: boolean,
): KeyBlock {
  const bytes = material(question, piece);
  if (question.option(value, 'format') === 'pem') return readPem(bytes.toString('latin1'));
  if (question.option(value, 'format') !== 'der') return wrongArgument();
  const type = textOrNone(question.option(value, 'type'));
  const structures: readonly KeyStructure[] = ['pkcs8', 'pkcs1', 'sec1', 'spki'];
  const structure = structures.find((name) => name === type) ?? wrongArgument();
  const isPrivate =
    structure === 'pkcs8' || structure === 'sec1' || (structure === 'pkcs1' && wantsPrivate);
  return { structure, isPrivate, der: bytes };
}

function material(question: Question, piece: number): Buffer {
  const bytes = question.bytes(piece);
  if (bytes.length <= MATERIAL_BYTES_MAX) return bytes;
  return refuse(
    'ERR_OUT_OF_RANGE',
    `A key may have at most ${MATERIAL_BYTES_MAX} bytes.`,
    RangeError,
  );
}

/** Only the members that keys have, and only texts. */
function jwkOf(bytes: Buffer): crypto.JsonWebKey {
  const given: unknown = JSON.parse(bytes.toString('utf8'));
  if (typeof given !== 'object' || given === null) return wrongArgument();
  const jwk: Record<string, string> = {};
  for (const name of JWK_MEMBERS) {
    const value: unknown = Object.hasOwn(given, name) ? Reflect.get(given, name) : undefined;
    if (typeof value === 'string') jwk[name] = value;
  }
  return jwk;
}

function wrongKind(format: unknown): never {
  if (format === 'pem') return refuse('ERR_OSSL_UNSUPPORTED', 'The key is not a private key.');
  return refuse(
    'ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE',
    'Invalid key object type, expected private.',
    TypeError,
  );
}

function bounded(key: KeyObject): KeyObject {
  if (!KINDS.some((kind) => kind === key.asymmetricKeyType)) {
    return refuse('ERR_CRYPTO_UNSUPPORTED_OPERATION', 'Keys of this kind are not supported.');
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (bits <= RSA_BITS_MAX) return key;
  return refuse('ERR_OUT_OF_RANGE', `RSA keys may have at most ${RSA_BITS_MAX} bits.`, RangeError);
}

/** Values: key, wants the private one?. Pieces: material, password. A key in the form the prelude keeps. */
export function importKey(question: Question): Answer {
  return kept([question.flag(1) ? privateKey(question, 0, 0) : publicKey(question, 0, 0)]);
}

function kept(keys: readonly KeyObject[]): Answer {
  return {
    value: keys.map((key) => ({
      type: key.type,
      kind: key.asymmetricKeyType,
      details: detailsOf(key),
    })),
    bytes: keys.map((key) =>
      key.type === 'private'
        ? key.export({ format: 'der', type: 'pkcs8' })
        : key.export({ format: 'der', type: 'spki' }),
    ),
  };
}

function detailsOf({ asymmetricKeyDetails = {} }: KeyObject): Json {
  const entries = Object.entries(asymmetricKeyDetails).map(([name, value]) =>
    typeof value === 'bigint' ? [name, { bigint: String(value) }] : [name, value],
  );
  return Object.fromEntries(entries);
}

/** Values: key, private?, `{format, type, cipher}`. Pieces: material, password, password of the export. */
export function exportKey(question: Question): Answer {
  const key = question.flag(1) ? privateKey(question, 0, 0) : publicKey(question, 0, 0);
  const format = question.option(2, 'format');
  if (format === 'jwk')
    return { value: { ...(key.export({ format: 'jwk' }) as Record<string, string>) } };
  const type = exportType(question, key);
  if (format !== 'pem' && format !== 'der') return wrongArgument();
  const protection = protectionOf(question);
  // The overloads want literals; both values were chosen from the lists that they stand for.
  const options = { format, type, ...protection };
  const exported: unknown = key.export(options as crypto.KeyExportOptions<'pem'>);
  if (typeof exported === 'string') return { value: exported };
  return exported instanceof Uint8Array ? { bytes: [exported] } : wrongArgument();
}

function exportType(question: Question, key: KeyObject): 'pkcs1' | 'pkcs8' | 'sec1' | 'spki' {
  const types =
    key.type === 'private' ? (['pkcs8', 'pkcs1', 'sec1'] as const) : (['spki', 'pkcs1'] as const);
  const type = question.option(2, 'type');
  return types.find((name) => name === type) ?? wrongArgument();
}

function protectionOf(question: Question): { cipher?: string; passphrase?: Buffer } {
  const cipher = textOrNone(question.option(2, 'cipher'));
  const passphrase = question.bytesOrNone(2);
  if (cipher === undefined && passphrase === undefined) return {};
  if (cipher === undefined || passphrase === undefined) return wrongArgument();
  if (!EXPORT_CIPHER.test(cipher.toLowerCase()) || passphrase.length > PASSPHRASE_BYTES_MAX) {
    return wrongArgument();
  }
  return { cipher, passphrase };
}

/** Values: kind, options. The private key and the public one. */
export function generateKeys(question: Question): Answer {
  const kind = KINDS.find((name) => name === question.value(0)) ?? wrongArgument();
  const { privateKey: secret, publicKey: open } = generate(kind, question);
  return kept([secret, open]);
}

function generate(kind: (typeof KINDS)[number], question: Question): crypto.KeyPairKeyObjectResult {
  if (kind === 'ec') {
    return crypto.generateKeyPairSync('ec', {
      namedCurve: curveName(question.option(1, 'namedCurve')),
    });
  }
  if (kind === 'rsa') return crypto.generateKeyPairSync('rsa', sizeOf(question));
  if (kind === 'rsa-pss') {
    const hashAlgorithm = question.option(1, 'hashAlgorithm');
    const digest = hashAlgorithm === undefined ? {} : { hashAlgorithm: digestName(hashAlgorithm) };
    return crypto.generateKeyPairSync('rsa-pss', { ...sizeOf(question), ...digest });
  }
  // One function with an overload for each of the four names.
  return crypto.generateKeyPairSync(kind as 'ed25519');
}

function sizeOf(question: Question): { modulusLength: number; publicExponent: number } {
  const bits = question.option(1, 'modulusLength');
  const given = question.option(1, 'publicExponent') ?? 65_537;
  const publicExponent = EXPONENTS.find((exponent) => exponent === given) ?? wrongArgument();
  return { modulusLength: integerOf(bits, RSA_BITS_MIN, RSA_BITS_GENERATED_MAX), publicExponent };
}

/** A curve that OpenSSL lists; `P-256` and its like too. */
export function curveName(value: unknown): string {
  const name = typeof value === 'string' ? value : wrongArgument();
  if (/^P-(?:256|384|521)$/.test(name) || crypto.getCurves().includes(name)) return name;
  return refuse('ERR_CRYPTO_INVALID_CURVE', 'Invalid EC curve name', TypeError);
}
