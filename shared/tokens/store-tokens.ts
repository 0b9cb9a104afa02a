/**
 * Stores many new tokens inside one transaction, in as few statements as there are rounds of ids to
 * try: mostly one. Either all are stored (or found to exist already), or the caller rolls back.
 */
import { readConfigVersions } from '../config-entries/config-version.ts';
import { createBatcher } from '../postgres/batcher.ts';
import type { Queryable } from '../postgres/pool.ts';
import type { TokenCreation } from './create-token.ts';
import { findDuplicates } from './find-duplicates.ts';
import { type CreationContext, type StoredToken, storeToken } from './store-token.ts';
import type { TokenRow } from './token-row.ts';
import { freeId } from './token-store.ts';
import { type InsertResult, insertTokens, type TokenInsert } from './token-writer.ts';

/** About as long a lock is waited for when ids are not taken in order any more. */
const LATER_WAIT_MS = 100;

export interface NewToken {
  creation: TokenCreation;
  /** What it is compared by; `undefined` when it has none, or nothing of the request deduplicates. */
  fingerprint: string | undefined;
}

/** A creation's, without what stores: that is the transaction. */
export interface StoringContext extends Omit<CreationContext, 'insert' | 'freeId'> {
  /** Told before other ids than the first are inserted. */
  onLaterIds?: () => void;
}

/** Where new tokens go and where duplicates are looked for, inside the caller's transaction. */
export interface TokenPlace {
  findDuplicates: typeof findDuplicates;
  insert(client: Queryable, inserts: TokenInsert[]): Promise<InsertResult[]>;
  freeId(client: Queryable, tenantId: string, id: string): Promise<boolean>;
}

const LIVE_TOKENS: TokenPlace = { findDuplicates, insert: insertTokens, freeId };

export type StoreOutcome = { stored: StoredToken } | { duplicate: TokenRow };

/**
 * One promise per token, in their order, settled when all are: what failed says so, and then nothing
 * may be committed. A duplicate is one of a token that exists, or of an earlier one of the same call.
 */
export async function storeTokens(
  client: Queryable,
  tokens: readonly NewToken[],
  context: StoringContext,
  place: TokenPlace = LIVE_TOKENS,
): Promise<PromiseSettledResult<StoreOutcome>[]> {
  const { tenant_id } = context;
  const wanted = tokens.flatMap(({ creation, fingerprint }) =>
    creation.deduplicate && fingerprint !== undefined ? [fingerprint] : [],
  );
  const existing = await place.findDuplicates(client, tenant_id, new Set(wanted));
  const storing = { ...context, ...insertsInTurn(client, context, place) };
  const first = new Map<string, Promise<StoredToken>>();
  const outcomes = tokens.map(async ({ creation, fingerprint = '' }): Promise<StoreOutcome> => {
    const duplicate = creation.deduplicate ? existing.get(fingerprint) : undefined;
    if (duplicate !== undefined) return { duplicate };
    const earlier = creation.deduplicate ? first.get(fingerprint) : undefined;
    if (earlier !== undefined) return { duplicate: (await earlier).row };
    const stored = storeToken(creation, storing);
    if (fingerprint !== '' && !first.has(fingerprint)) first.set(fingerprint, stored);
    return { stored: await stored };
  });
  const settled = await Promise.allSettled(outcomes);
  // An insert brings the version along; this is for when there was none.
  if (settled.every(isDuplicate)) {
    const [reading] = await readConfigVersions(client, [tenant_id]);
    if (reading !== undefined) context.confirm(reading);
  }
  return settled;
}

const isDuplicate = (result: PromiseSettledResult<StoreOutcome>): boolean =>
  result.status === 'fulfilled' && 'duplicate' in result.value;

/**
 * Inserts of one turn share a statement; a client carries out one statement after another. Whoever wants
 * the same ids waits in their order, and never for each other, as long as they are the first. Those that
 * are tried later may come before what is held already: nobody waits long then (`isCrossed`).
 */
function insertsInTurn(
  client: Queryable,
  { tenant_id, onLaterIds }: StoringContext,
  place: TokenPlace,
): Pick<CreationContext, 'insert' | 'freeId'> {
  // After an error the transaction takes no more statements: what follows fails with the same one.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work);
    next.catch(() => {});
    last = next;
    return next;
  };
  let rounds = 0;
  const batch = createBatcher<TokenInsert, InsertResult>({
    run: (inserts) =>
      inTurn(async () => {
        rounds += 1;
        if (rounds === 2) {
          onLaterIds?.();
          await waitBriefly(client);
        }
        return place.insert(client, inserts);
      }),
    identity: (insert) => insert.token.id,
  });
  const frees = createBatcher<string, boolean>({
    run: (ids) =>
      inTurn(async () => {
        const freed = new Map<string, boolean>();
        for (const id of ids.toSorted(byBytes)) {
          freed.set(id, await place.freeId(client, tenant_id, id));
        }
        return ids.map((id) => freed.get(id) === true);
      }),
    identity: (id) => id,
  });
  return {
    insert: (insert) => batch.submit(insert),
    freeId: (id) => frees.submit(id),
  };
}

/** As Postgres orders ids. */
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Not all as long, lest those that met meet again. */
async function waitBriefly(client: Queryable): Promise<void> {
  const limit_ms = Math.round(LATER_WAIT_MS * (0.5 + Math.random()));
  await client.query("SELECT set_config('lock_timeout', $1, true)", [`${limit_ms}ms`]);
}
