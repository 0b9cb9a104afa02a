/**
 * The transaction in which a request has its effect: the effect, the record of its idempotency key
 * and its audit rows commit together, or none does (design section 1, invariant 3).
 */
import type { Transform } from '../shared/access/access-rules.ts';
import type { Permission } from '../shared/access/permissions.ts';
import type { AuditOperation } from '../shared/audit/audit-entry.ts';
import { insertAudit } from '../shared/audit/write-audit.ts';
import type { UsedRight } from '../shared/idempotency/kept-answer.ts';
import { holdKey, insertRecord } from '../shared/idempotency/record-store.ts';
import { inTransaction, type PoolClient } from '../shared/postgres/pool.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import type { Answer, Exchange } from './exchange.ts';
import { type AccessOrigin, accessEntries } from './record-access.ts';
import { withoutReveal } from './routes/permit.ts';
import type { Services, TokenOperation } from './services.ts';

/** A token a write has touched, and how its answer showed it. */
export interface WrittenToken {
  readonly id: string;
  readonly container: string;
  readonly transform: Transform;
  /** Found, not made: its contents were stored already. */
  readonly duplicate?: true;
}

/** An answer that is kept under the request's idempotency key, if it has one. */
export interface KeyedAnswer {
  readonly answer: Answer;
  /** What a replay of the answer needs besides the operation's permission. */
  readonly rights?: readonly UsedRight[];
}

export interface Write extends KeyedAnswer {
  readonly operation: TokenOperation;
  readonly tokens: readonly WrittenToken[];
}

const PERMISSIONS: Partial<Record<TokenOperation, Permission>> = {
  create: 'token:create',
  update: 'token:update',
  delete: 'token:delete',
};

/** A write that found its contents stored already has shown that token. */
const AUDITED: Readonly<Record<TokenOperation, AuditOperation>> = {
  ...{ create: 'create', deduplicate: 'read', update: 'update', delete: 'delete' },
  ...{ read: 'read', list: 'read', search: 'read', detokenize: 'use' },
};

/**
 * Runs `work` in one transaction that also keeps its answer. Throws 409 while another request with
 * the same key is under way; when that one has answered meanwhile, everything is rolled back and the
 * request answered by `answerOnce`.
 */
export function inKeyedTransaction<K extends KeyedAnswer>(
  exchange: Exchange,
  services: Pick<Services, 'pool'>,
  work: (client: PoolClient) => Promise<K>,
): Promise<K> {
  const { idempotency: claim } = exchange;
  return inTransaction(services.pool, async (client) => {
    if (claim === undefined) return work(client);
    await holdKey(client, claim);
    const keyed = await work(client);
    // Only successes are kept: a failure is tried again.
    if (keyed.answer.status < 400) {
      await insertRecord(client, claim, { ...keyed.answer, rights: keyed.rights });
    }
    return keyed;
  });
}

/** The same for what tokens are written by. */
export function inWriteTransaction<W extends Write>(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
  work: (client: PoolClient) => Promise<W>,
): Promise<W> {
  return inKeyedTransaction(exchange, services, async (client) => {
    const write = await work(client);
    await auditWrite(client, write, exchange, application);
    return { ...write, rights: write.rights ?? rightsOf(write) };
  });
}

/** Tells the audit trail in the transaction of the write. */
export async function auditWrite(
  client: PoolClient,
  { operation, tokens }: Pick<Write, 'operation' | 'tokens'>,
  origin: AccessOrigin,
  application: CachedApplication,
): Promise<void> {
  const found = tokens.filter(({ duplicate }) => duplicate === true);
  const written = tokens.filter(({ duplicate }) => duplicate !== true);
  await insertAudit(client, [
    ...accessEntries(AUDITED[operation], written, origin, application),
    ...accessEntries('read', found, origin, application),
  ]);
}

/** By which right each container was written, unless the write says it otherwise. */
function rightsOf({ operation, tokens }: Write): UsedRight[] {
  const permission = PERMISSIONS[operation];
  if (permission === undefined) return [];
  const rights = new Map<string, UsedRight>();
  for (const { container, transform } of tokens) {
    rights.set(container, { permission, container, transform: withoutReveal(transform) });
  }
  return [...rights.values()];
}
