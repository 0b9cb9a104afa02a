/**
 * Sealed values: AES-256-GCM with a random 96-bit nonce and a versioned header, bound by additional
 * authenticated data to what the value belongs to. A sealed value that is moved or re-labelled does
 * not open (design sections 1.2 and 6).
 *
 * Layout: format (1 byte) | key version (4 bytes, big-endian) | nonce (12) | tag (16) | ciphertext.
 */
import { createCipheriv, createDecipheriv, type KeyObject, randomFillSync } from 'node:crypto';

const FORMAT = 1;
const NONCE_START = 5;
const TAG_START = 17;
const TEXT_START = 33;
const TAG_BYTES = 16;
const ALGORITHM = 'aes-256-gcm';
const OPTIONS = { authTagLength: TAG_BYTES } as const;

/** One version of a data key. Held as a `KeyObject`: a raw Buffer key costs five times as much. */
export interface VersionedKey {
  readonly version: number;
  readonly key: KeyObject;
}

/** A sealed value that did not open: wrong key, moved row, changed label or changed bytes. */
export class SealBrokenError extends Error {
  constructor(options?: { cause?: unknown }) {
    super('a sealed value did not open', options);
    this.name = 'SealBrokenError';
  }
}

/** Nonces are drawn from the system in blocks: one call per value cost a third of a seal. */
const NONCE_POOL = Buffer.allocUnsafeSlow(12 * 256);
let noncePoolOffset = NONCE_POOL.length;

function writeNonce(target: Buffer, offset: number): void {
  if (noncePoolOffset === NONCE_POOL.length) {
    randomFillSync(NONCE_POOL);
    noncePoolOffset = 0;
  }
  NONCE_POOL.copy(target, offset, noncePoolOffset, noncePoolOffset + 12);
  noncePoolOffset += 12;
}

/**
 * The additional authenticated data of a value: its labels, joined by NUL. Labels must not contain
 * NUL themselves (ids, types and containers cannot); the first names the kind of resource.
 */
export function sealLabel(...labels: string[]): Buffer {
  return Buffer.from(labels.join('\0'), 'utf8');
}

/** Seals `plaintext` under `key`, bound to `label`. */
export function seal(key: VersionedKey, plaintext: Buffer, label: Buffer): Buffer {
  const sealed = Buffer.allocUnsafe(TEXT_START + plaintext.length);
  sealed[0] = FORMAT;
  sealed.writeUInt32BE(key.version, 1);
  writeNonce(sealed, NONCE_START);
  const nonce = sealed.subarray(NONCE_START, TAG_START);
  const cipher = createCipheriv(ALGORITHM, key.key, nonce, OPTIONS);
  cipher.setAAD(label);
  cipher.update(plaintext).copy(sealed, TEXT_START);
  cipher.final();
  cipher.getAuthTag().copy(sealed, TAG_START);
  return sealed;
}

/** The key version a sealed value names. Throws `SealBrokenError` when it is not a sealed value. */
export function sealedKeyVersion(sealed: Buffer): number {
  if (sealed.length < TEXT_START || sealed[0] !== FORMAT) throw new SealBrokenError();
  return sealed.readUInt32BE(1);
}

/** Opens a sealed value; throws `SealBrokenError` unless key, label and every byte are the ones. */
export function open(key: KeyObject, sealed: Buffer, label: Buffer): Buffer {
  sealedKeyVersion(sealed);
  const decipher = createDecipheriv(
    ALGORITHM,
    key,
    sealed.subarray(NONCE_START, TAG_START),
    OPTIONS,
  );
  decipher.setAAD(label);
  decipher.setAuthTag(sealed.subarray(TAG_START, TEXT_START));
  try {
    const plaintext = decipher.update(sealed.subarray(TEXT_START));
    decipher.final();
    return plaintext;
  } catch (cause) {
    throw new SealBrokenError({ cause });
  }
}
