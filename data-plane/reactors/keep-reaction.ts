/**
 * Reactions with an idempotency key. Their code runs for too long to hold a transaction open, so who
 * runs it holds a lease on the key, and what comes of it is kept before it is answered.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type IdempotencyClaim, inProgress } from '../../shared/idempotency/claim.ts';
import type { UsedRight } from '../../shared/idempotency/kept-answer.ts';
import { takeLease } from '../../shared/idempotency/lease.ts';
import { isDatabaseUnavailable } from '../../shared/postgres/database-error.ts';
import { inTransaction, type PoolClient } from '../../shared/postgres/pool.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { ReactingServices } from '../services.ts';
import type { Transact } from '../tokenize-body.ts';
import { USE } from '../used-containers.ts';
import type { OpenedCvcs } from './opened-cvcs.ts';
import type { Reaction } from './reaction.ts';

/** How long a database that is away is waited for; the lease lasts longer. */
const OUTAGE_MS_MAX = 8_000;
const OUTAGE_RETRY_MS = 250;

/** How tokens are made together with the answer that names them; `answerOf` is given their JSON. */
export type MakeWithAnswer = (answerOf: (tokens: string) => Answer) => Transact;

/** Of a reaction, what is to be known when its answer is kept. */
export interface ReactionToKeep extends Pick<Reaction, 'reactor' | 'right'> {
  readonly cvcs: Pick<OpenedCvcs, 'due_at_ms'>;
}

/**
 * Runs `react` once for the exchange's key, if it has one, and keeps its answer if it is a success.
 * Throws 429 before anything runs when the tenant has enough of large answers kept.
 */
export function keepReaction(
  exchange: Exchange,
  reaction: ReactionToKeep,
  services: ReactingServices,
  react: (makeWithAnswer?: MakeWithAnswer) => Promise<Answer>,
): Promise<Answer> {
  const { idempotency: claim } = exchange;
  return claim === undefined ? react() : runOnLease(exchange, claim, reaction, services, react);
}

async function runOnLease(
  exchange: Exchange,
  claim: IdempotencyClaim,
  { reactor, right, cvcs }: ReactionToKeep,
  { pool, reactions: { answerRoom }, log }: ReactingServices,
  react: (makeWithAnswer: MakeWithAnswer) => Promise<Answer>,
): Promise<Answer> {
  answerRoom.require(claim.tenant_id);
  const lease = await takeLease(pool, claim, log);
  const keep = (
    answer: Answer,
    shown: readonly UsedRight[] = [],
    client?: PoolClient,
  ): Promise<boolean> => {
    const used = right.used.map(([container, transform]) => ({
      ...{ permission: USE, container, transform },
    }));
    const rights = [...used, ...shown];
    const { reactor_id } = reactor;
    return lease.keep({ ...answer, rights, reactor_id }, cvcs.due_at_ms, client);
  };
  let isKept = false;
  // Tokens without their answer would be made again by the client's own retry.
  const makeWithAnswer: MakeWithAnswer = (answerOf) => async (work) => {
    const made = await throughOutage(() =>
      inTransaction(pool, async (client) => {
        const tokenized = await work(client);
        // Whoever has the key now makes the tokens.
        const { text, rights } = tokenized;
        if (!(await keep(answerOf(text), rights, client))) throw inProgress();
        return tokenized;
      }),
    );
    isKept = true;
    return made;
  };
  const answer = await react(makeWithAnswer).catch(async (error: unknown) => {
    await lease.release().catch(() => undefined);
    throw error;
  });
  if (!isKept && answer.status >= 400) {
    // What cannot be released ends by itself.
    await lease.release().catch(() => undefined);
    return answer;
  }
  const { traceId: trace_id } = exchange.head;
  isKept ||= await throughOutage(() => keep(answer));
  if (isKept) answerRoom.add(claim.tenant_id, Buffer.byteLength(answer.body ?? ''));
  else log.warn({ trace_id }, 'a reaction outlived its lease: its answer is not kept');
  return answer;
}

/** The code has run, and by a retry it would run again: what it came to is not given up at once. */
async function throughOutage<T>(work: () => Promise<T>): Promise<T> {
  const givenUpAt = performance.now() + OUTAGE_MS_MAX;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isDatabaseUnavailable(error) || performance.now() > givenUpAt) throw error;
      await delay(OUTAGE_RETRY_MS);
    }
  }
}
