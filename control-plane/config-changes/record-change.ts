/**
 * Every configuration change ends here, inside its own transaction: a new random version of the
 * tenant's configuration, and which entities it concerns (design section 5).
 */
import { randomBytes } from 'node:crypto';
import {
  type ChangedEntity,
  type ConfigChange,
  NOTICE_CHANNEL,
} from '../../shared/config-entries/config-change.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';

/** 128 random bits in the form of a uuid, which is how the column holds them. */
export function newConfigVersion(): string {
  const hex = randomBytes(16).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/**
 * Moves the tenant to a new configuration version in the caller's transaction, and tells listening
 * data planes at commit. Locks the tenant's row, so changes of one tenant follow one another.
 * Throws 401 when the tenant is gone: its keys are too.
 */
export async function recordChange(
  client: Queryable,
  tenantId: string,
  entities: ChangedEntity[],
): Promise<ConfigChange> {
  const version = newConfigVersion();
  const { rows } = await client.query<{ previous_version: string }>(
    `WITH previous AS (SELECT config_version FROM tenants WHERE id = $1 FOR UPDATE)
     UPDATE tenants SET config_version = $2 FROM previous WHERE id = $1
     RETURNING previous.config_version AS previous_version`,
    [tenantId, version],
  );
  const previous = rows[0]?.previous_version;
  if (previous === undefined) throw new ApiError('unauthorized', 'The tenant no longer exists');
  await client.query(
    `INSERT INTO config_changes (tenant_id, version, kind, id, previous_version)
     SELECT $1, $2, kind, id, $3 FROM unnest($4::text[], $5::text[]) AS e (kind, id)`,
    [tenantId, version, previous, entities.map((e) => e.kind), entities.map((e) => e.id)],
  );
  const change: ConfigChange = { tenant_id: tenantId, version, entities };
  await client.query('SELECT pg_notify($1, $2)', [NOTICE_CHANNEL, JSON.stringify(change)]);
  return change;
}
