/**
 * The right to work on an idempotency key for longer than a transaction should be open: customer code
 * runs for up to 30 s. A lease ends by itself when its process has died; what it was held for may then
 * be started again, by the client's own retry, and whoever comes back late keeps nothing.
 */
import type { Logger } from '../observability/logger.ts';
import type { Queryable } from '../postgres/pool.ts';
import type { IdempotencyClaim } from './claim.ts';
import { type KeptAnswer, sealAnswer } from './kept-answer.ts';
import { AnsweredMeanwhileError, DEAD_RECORD } from './record-store.ts';

const LEASE = "interval '20 seconds'";
/** Several may fail before the lease ends. */
const RENEW_EVERY_MS = 5_000;

export interface Lease {
  /**
   * Ends it with an answer, when the caller's transaction commits if it is one's `client`. It is shown
   * until `due_at_ms`, or for a day. False when the lease was lost: nothing is kept then.
   */
  keep(answer: KeptAnswer, due_at_ms: number | null, client?: Queryable): Promise<boolean>;
  /** Ends it with nothing. */
  release(): Promise<void>;
}

/** Renewed until it is ended. Throws `AnsweredMeanwhileError` when the key has an owner or an answer. */
export async function takeLease(
  db: Queryable,
  claim: IdempotencyClaim,
  log: Pick<Logger, 'warn'>,
): Promise<Lease> {
  const { tenant_id, scope } = claim;
  const { rows } = await db.query<{ lease_id: string }>({
    name: 'take-idempotency-lease',
    text: `
      INSERT INTO idempotency_records AS i (tenant_id, scope, lease_id, leased_until)
      VALUES ($1, $2, gen_random_uuid(), clock_now() + ${LEASE})
      ON CONFLICT (tenant_id, scope) DO UPDATE SET lease_id = excluded.lease_id,
        leased_until = excluded.leased_until, created_at = excluded.created_at,
        sealed = NULL, token_id = NULL, shows_mask = NULL, effect_at = NULL, due_at = NULL
      WHERE ${DEAD_RECORD}
      RETURNING lease_id`,
    values: [tenant_id, scope],
  });
  const lease_id = rows[0]?.lease_id;
  if (lease_id === undefined) throw new AnsweredMeanwhileError();
  const held = [tenant_id, scope, lease_id];
  const renewing = setInterval(() => {
    renewLease(db, held).catch((error: unknown) => log.warn({ err: error }, 'lease not renewed'));
  }, RENEW_EVERY_MS);
  return {
    keep(answer, due_at_ms, client = db) {
      // Within a transaction nobody else can take it over until that has ended.
      clearInterval(renewing);
      return keepAnswer(client, held, sealAnswer(claim, answer, due_at_ms), due_at_ms);
    },
    async release() {
      clearInterval(renewing);
      await db.query({
        name: 'release-idempotency-lease',
        text: `DELETE FROM idempotency_records
               WHERE tenant_id = $1 AND scope = $2 AND lease_id = $3`,
        values: held,
      });
    },
  };
}

async function renewLease(db: Queryable, held: readonly unknown[]): Promise<void> {
  await db.query({
    name: 'renew-idempotency-lease',
    text: `UPDATE idempotency_records SET leased_until = clock_now() + ${LEASE}
           WHERE tenant_id = $1 AND scope = $2 AND lease_id = $3`,
    values: [...held],
  });
}

/** From now on it counts for a day. */
async function keepAnswer(
  db: Queryable,
  held: readonly unknown[],
  sealed: Buffer,
  due_at_ms: number | null,
): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'keep-answer-of-lease',
    text: `UPDATE idempotency_records
           SET sealed = $4, due_at = to_timestamp($5::float8 / 1000), created_at = clock_now(),
             lease_id = NULL, leased_until = NULL
           WHERE tenant_id = $1 AND scope = $2 AND lease_id = $3`,
    values: [...held, sealed, due_at_ms],
  });
  return rowCount === 1;
}
