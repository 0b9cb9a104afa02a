/**
 * Accepts asynchronous reactions: concurrent calls become one statement, which writes no job for a caller
 * whose configuration version is no longer the tenant's (design section 5).
 */

import type { ConfigReading } from '../../shared/config-entries/config-version.ts';
import { announceJobs } from '../../shared/jobs/job-store.ts';
import { type Batcher, createBatcher } from '../../shared/postgres/batcher.ts';
import { isDatabaseUnavailable, isRowError } from '../../shared/postgres/database-error.ts';
import { milliseconds } from '../../shared/postgres/milliseconds.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';

export interface AcceptedReaction {
  readonly tenant_id: string;
  /** It was decided on. With another one nothing is written, and the reading tells. */
  readonly config_version: string;
  readonly id: string;
  readonly sealed: Buffer;
}

export type ReactionQueue = Batcher<AcceptedReaction, ConfigReading>;

const ACCEPT_REACTIONS = {
  name: 'accept-reactions',
  text: `
    WITH input AS MATERIALIZED (
      SELECT i.*, t.config_version AS current_version
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bytea[]) WITH ORDINALITY
        AS i (tenant_id, config_version, id, sealed, n)
      LEFT JOIN tenants t ON t.id = i.tenant_id
    ),
    accepted AS (
      INSERT INTO jobs (tenant_id, id, kind, sealed)
      SELECT tenant_id, id, 'react', sealed FROM input WHERE config_version = current_version
    )
    SELECT current_version AS config_version, ${milliseconds('clock_now()')} AS now_ms
    FROM input ORDER BY n`,
};

export function createReactionQueue(db: Queryable): ReactionQueue {
  return createBatcher<AcceptedReaction, ConfigReading>({
    run: async (calls) => {
      const readings = await acceptReactions(db, calls);
      // They are accepted: a notice that fails only makes them wait for the next look.
      await announceJobs(db).catch(() => undefined);
      return readings;
    },
    isolates: isRowError,
    isOutage: isDatabaseUnavailable,
  });
}

export async function acceptReactions(
  db: Queryable,
  calls: readonly AcceptedReaction[],
): Promise<ConfigReading[]> {
  const { rows } = await db.query<ConfigReading>({
    ...ACCEPT_REACTIONS,
    values: [
      calls.map(({ tenant_id }) => tenant_id),
      calls.map(({ config_version }) => config_version),
      calls.map(({ id }) => id),
      calls.map(({ sealed }) => sealed),
    ],
  });
  return rows;
}
