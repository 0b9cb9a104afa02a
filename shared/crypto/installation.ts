/**
 * The installation's own secrets: one versioned installation key (wrapped by the KEK) that wraps
 * per-tenant data keys, and the pepper of API-key hashes (wrapped by the installation key). A cold
 * start is one call to the KEK, however many tenants there are.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import type { Queryable } from '../postgres/pool.ts';
import { open, SealBrokenError, seal, sealedKeyVersion, sealLabel } from './envelope.ts';
import type { KeyEncryption } from './local-key.ts';

export interface Installation {
  /** Wraps 32 key bytes under the current installation key, bound to `label`. */
  wrap(key: Buffer, label: Buffer): Buffer;
  /** Unwraps what `wrap` made, with the version it names. Throws `SealBrokenError`. */
  unwrap(wrapped: Buffer, label: Buffer): Buffer;
  /** HMAC key of stored API-key hashes. */
  readonly pepper: KeyObject;
  /** What the data plane's relay shows the control plane, so that forwarded headers are believed. */
  readonly relaySecret: string;
  /** Signs checkpoints of the audit trail. Derived, so every installation has it. */
  readonly auditKey: KeyObject;
}

const PEPPER_LABEL = sealLabel('installation-secret', 'pepper');

/** Creates the installation key and the pepper where they are missing. Safe to run in parallel. */
export async function createInstallation(db: Queryable, kek: KeyEncryption): Promise<void> {
  const existing = await db.query('SELECT 1 FROM installation_keys LIMIT 1');
  if (existing.rowCount !== 0) return;
  const key = randomBytes(32);
  const inserted = await db.query(
    `INSERT INTO installation_keys (version, kek_id, wrapped) VALUES (1, $1, $2)
     ON CONFLICT (version) DO NOTHING`,
    [kek.id, await kek.wrap(key)],
  );
  if (inserted.rowCount === 0) return;
  const pepper = seal({ version: 1, key: createSecretKey(key) }, randomBytes(32), PEPPER_LABEL);
  await db.query(`INSERT INTO installation_secrets (name, wrapped) VALUES ('pepper', $1)`, [
    pepper,
  ]);
}

/** Unwraps the installation's secrets. Throws a clear error when the KEK is not the one they need. */
export async function loadInstallation(db: Queryable, kek: KeyEncryption): Promise<Installation> {
  const { rows } = await db.query<{ version: number; wrapped: Buffer }>(
    'SELECT version, wrapped FROM installation_keys ORDER BY version',
  );
  const keys = new Map<number, KeyObject>();
  let current = 0;
  for (const row of rows) {
    keys.set(row.version, createSecretKey(await unwrapInstallationKey(kek, row.wrapped)));
    current = row.version;
  }
  const currentKey = keys.get(current);
  if (currentKey === undefined) throw new Error('the database has no installation key: migrate it');

  const unwrap = (wrapped: Buffer, label: Buffer): Buffer => {
    const key = keys.get(sealedKeyVersion(wrapped));
    if (key === undefined) throw new SealBrokenError();
    return open(key, wrapped, label);
  };
  const secret = await db.query<{ wrapped: Buffer }>(
    `SELECT wrapped FROM installation_secrets WHERE name = 'pepper'`,
  );
  const wrappedPepper = secret.rows[0]?.wrapped;
  if (wrappedPepper === undefined) throw new Error('the database has no pepper: migrate it');
  const pepper = createSecretKey(unwrap(wrappedPepper, PEPPER_LABEL));
  return {
    wrap: (key, label) => seal({ version: current, key: currentKey }, key, label),
    unwrap,
    pepper,
    relaySecret: createHmac('sha256', pepper).update('relay-to-control-plane').digest('base64url'),
    auditKey: createSecretKey(createHmac('sha256', pepper).update('audit-checkpoints').digest()),
  };
}

async function unwrapInstallationKey(kek: KeyEncryption, wrapped: Buffer): Promise<Buffer> {
  try {
    return await kek.unwrap(wrapped);
  } catch (cause) {
    throw new Error('the key-encryption key is not the one this database was sealed with', {
      cause,
    });
  }
}
