/**
 * The local key-encryption key (KEK): 32 bytes from `SALLYPORT_KEK` or from the key file in
 * `DATA_DIR`. It wraps the installation key and nothing else, so other providers need one call each.
 */
import { createSecretKey } from 'node:crypto';
import { open, seal, sealLabel } from './envelope.ts';

export const KEK_BYTES = 32;

/** Wraps and unwraps the installation key. Asynchronous because other providers are remote. */
export interface KeyEncryption {
  /** Names the key for operators, e.g. in the table of installation keys. Never secret. */
  readonly id: string;
  wrap(key: Buffer): Promise<Buffer>;
  unwrap(wrapped: Buffer): Promise<Buffer>;
}

const LABEL = sealLabel('installation-key');

/** Reads a KEK written as base64 of 32 bytes; `undefined` when it is anything else. */
export function parseKek(text: string): Buffer | undefined {
  const bytes = Buffer.from(text.trim(), 'base64');
  return bytes.length === KEK_BYTES && bytes.toString('base64') === text.trim() ? bytes : undefined;
}

/** Key encryption by a key in memory. `kek` is 32 bytes. */
export function localKeyEncryption(kek: Buffer): KeyEncryption {
  if (kek.length !== KEK_BYTES) throw new Error(`a KEK has ${KEK_BYTES} bytes`);
  const key = createSecretKey(kek);
  return {
    id: 'local',
    wrap: async (plain) => seal({ version: 1, key }, plain, LABEL),
    unwrap: async (wrapped) => open(key, wrapped, LABEL),
  };
}
