/**
 * Finds secrets in bytes, also in the disguises in which they usually leak: turned around, encoded, or
 * as a plain hash, which anybody can reverse for a number of 16 digits.
 */
import { createHash } from 'node:crypto';
import { encodeBase58 } from '../../shared/api-keys.ts';

export interface Needle {
  /** What it is, for a failure; never the secret itself. */
  readonly name: string;
  readonly bytes: Buffer;
}

const HASHES = ['md5', 'sha1', 'sha256', 'sha512'];

/** A secret under a name for failures, e.g. `card number 17`. */
export type Secret = readonly [name: string, value: string];

/** Every form of every secret. */
export function needlesOf(secrets: readonly Secret[]): Needle[] {
  return secrets.flatMap(([name, value]) =>
    Object.entries(formsOf(value)).map(([form, bytes]) => ({
      name: `${name} as ${form}`,
      bytes: typeof bytes === 'string' ? Buffer.from(bytes) : bytes,
    })),
  );
}

function formsOf(value: string): Record<string, Buffer | string> {
  const bytes = Buffer.from(value);
  const forms: Record<string, Buffer | string> = {
    text: value,
    'text turned around': [...value].reverse().join(''),
    'UTF-16': Buffer.from(value, 'utf16le'),
    ...hexForms('', bytes),
  };
  for (const offset of [0, 1, 2]) forms[`base64 from byte ${offset}`] = base64Core(bytes, offset);
  for (const algorithm of HASHES) {
    // As it is, and as the JSON text of it.
    for (const text of [value, JSON.stringify(value)]) {
      const digest = createHash(algorithm).update(text).digest();
      const what = text === value ? algorithm : `${algorithm} of its JSON`;
      Object.assign(forms, hexForms(`${what} `, digest));
      forms[what] = digest;
      forms[`${what} base64`] = digest.toString('base64').replace(/=+$/, '');
      forms[`${what} base64url`] = digest.toString('base64url');
      forms[`${what} base58`] = encodeBase58(digest);
    }
  }
  return forms;
}

const hexForms = (prefix: string, bytes: Buffer): Record<string, string> => ({
  [`${prefix}hex`]: bytes.toString('hex'),
  [`${prefix}HEX`]: bytes.toString('hex').toUpperCase(),
});

/** The digits that depend on nothing but the bytes, wherever in a longer text these begin. */
function base64Core(bytes: Buffer, offset: number): string {
  const shifted = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
  const first = Math.ceil((offset * 8) / 6);
  return shifted.slice(first, Math.floor(((offset + bytes.length) * 8) / 6));
}

/** Looks for thousands of needles at once: one pass over the bytes, however many there are. */
export function createScanner(needles: readonly Needle[]): (haystack: Buffer) => string[] {
  const beginnings = new Uint8Array(1 << 16);
  const byBeginning = new Map<number, Needle[]>();
  for (const needle of needles) {
    if (needle.bytes.length < 4) throw new Error(`${needle.name} is too short to be told apart`);
    beginnings[needle.bytes.readUInt16BE(0)] = 1;
    const beginning = needle.bytes.readUInt32BE(0);
    byBeginning.set(beginning, [...(byBeginning.get(beginning) ?? []), needle]);
  }
  return (haystack) => {
    const found = new Set<string>();
    for (let index = 0; index + 4 <= haystack.length; index += 1) {
      const two = ((haystack[index] as number) << 8) | (haystack[index + 1] as number);
      if (beginnings[two] === 0) continue;
      for (const needle of byBeginning.get(haystack.readUInt32BE(index)) ?? []) {
        const end = index + needle.bytes.length;
        if (needle.bytes.compare(haystack, index, Math.min(end, haystack.length)) === 0) {
          found.add(needle.name);
        }
      }
    }
    return [...found];
  };
}
