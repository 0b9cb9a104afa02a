/**
 * The key-encryption key that Sallyport generates for itself when none is given: one file in
 * `DATA_DIR`, mode 0600. Never overwritten; whoever loses it loses every token.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { link, open, readFile, rm, writeFile } from 'node:fs/promises';
import pg from 'pg';
import { SealBrokenError } from '../shared/crypto/envelope.ts';
import { KEK_BYTES, parseKek } from '../shared/crypto/local-key.ts';
import type { DataDir } from './data-dir.ts';

/** The key in base64, or `undefined` when there is no key file. Throws when the file is damaged. */
export async function readLocalKek(dataDir: DataDir): Promise<string | undefined> {
  let text: string;
  try {
    text = (await readFile(dataDir.kek, 'utf8')).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Error(`DATA_DIR: ${dataDir.kek} cannot be read (${code})`);
  }
  if (parseKek(text) === undefined) {
    throw new Error(`${dataDir.kek} is not a key of ${KEK_BYTES} bytes in base64: restore it`);
  }
  return text;
}

/**
 * Generates the key and writes it durably. The file appears whole or not at all; throws (EEXIST)
 * rather than replace one.
 */
export async function createLocalKek(dataDir: DataDir): Promise<string> {
  const text = randomBytes(KEK_BYTES).toString('base64');
  const draft = `${dataDir.kek}.${randomUUID()}`;
  await writeFile(draft, `${text}\n`, { mode: 0o600, flag: 'wx', flush: true });
  try {
    await link(draft, dataDir.kek);
  } finally {
    await rm(draft, { force: true });
  }
  // The name of the file must survive a power failure as well.
  const directory = await open(dataDir.path, 'r');
  await directory.sync().finally(() => directory.close());
  return text;
}

/** Throws: a database is there, the key that opens it is not. */
export function refuseMissingKek(dataDir: DataDir): never {
  throw new Error(
    `the database is sealed with a key that is not here: restore ${dataDir.kek} or set SALLYPORT_KEK`,
  );
}

/**
 * Throws one sentence that names where the wrong key came from; every other error as it is.
 * `kekFile`: the key file in use, unset when `SALLYPORT_KEK` gave the key.
 */
export function refuseWrongKek({ kekFile }: { kekFile?: string }, error: unknown): never {
  if (!(error instanceof Error && error.cause instanceof SealBrokenError)) throw error;
  const [wrong, wanted] =
    kekFile === undefined
      ? ['SALLYPORT_KEK', 'set it to that one']
      : [kekFile, 'restore that one, or set SALLYPORT_KEK'];
  throw new Error(`${wrong} is not the one this database was sealed with: ${wanted}`);
}

/** Whether the database holds an installation key, which only one KEK opens. */
export async function isSealed(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string | null }>(
      `SELECT to_regclass('installation_keys')::text AS name`,
    );
    if (rows[0]?.name === null) return false;
    return (await client.query('SELECT 1 FROM installation_keys LIMIT 1')).rowCount !== 0;
  } finally {
    await client.end();
  }
}
