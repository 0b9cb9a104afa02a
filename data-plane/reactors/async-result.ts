/**
 * The one result of an asynchronous reaction. It is stored in the transaction that ends its job, together
 * with the tokens it names and the callback that delivers it: all of it once, or nothing.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../../shared/errors.ts';
import { type ClaimedJob, enqueueJob } from '../../shared/jobs/job-store.ts';
import type { JobLease } from '../../shared/jobs/run-jobs.ts';
import {
  isDatabaseUnavailable,
  translateDatabaseError,
} from '../../shared/postgres/database-error.ts';
import type { PoolClient } from '../../shared/postgres/pool.ts';
import type { Answer } from '../exchange.ts';
import type { ReactingServices } from '../services.ts';
import type { Tokenized } from '../tokenize-body.ts';
import type { CallerRight } from './caller-right.ts';
import { type QueuedReaction, sealJob } from './job-content.ts';
import type { OpenedCvcs } from './opened-cvcs.ts';
import { problemAnswer } from './problem-answer.ts';
import { insertResult, type ResultName, sealResult } from './result-store.ts';

/** How often a database that is away is asked again to keep what a run came to. */
const OUTAGE_RETRY_MS = 500;

/** Thrown where nothing is left to be done: the job has ended, was given back, or is another's. */
class NothingLeft extends Error {}

export class AsyncResult {
  readonly #name: ResultName;
  readonly #queued: QueuedReaction;
  readonly #lease: JobLease;
  readonly #services: ReactingServices;
  #right: CallerRight | undefined;
  #cvcs: OpenedCvcs | undefined;

  constructor(
    { tenant_id, id }: ClaimedJob,
    queued: QueuedReaction,
    lease: JobLease,
    services: ReactingServices,
  ) {
    const { reactor_id, application_id } = queued;
    this.#name = { tenant_id, id, reactor_id, application_id };
    this.#queued = queued;
    this.#lease = lease;
    this.#services = services;
  }

  /** The code is about to run on what this right has opened, and on these cvcs. */
  startedBy(right: CallerRight, cvcs: OpenedCvcs): void {
    this.#right = right;
    this.#cvcs = cvcs;
  }

  /** Ends a run whose job is over for this process. */
  notOurs(): never {
    throw new NothingLeft();
  }

  async store(answer: Answer): Promise<void> {
    await this.whileHeld(() => this.#lease.inTransaction((client) => this.#write(client, answer)));
  }

  /** Stores what `make` has made of tokens, as `answerOf` shows it, in the transaction that makes them. */
  async storeWith(
    make: (client: PoolClient) => Promise<Tokenized>,
    answerOf: (tokens: string) => Answer,
  ): Promise<Tokenized> {
    let made: Tokenized | undefined;
    await this.#lease.inTransaction(async (client) => {
      made = await make(client);
      await this.#write(client, answerOf(made.text));
    });
    return made ?? this.notOurs();
  }

  /**
   * Stores the error as a caller would have been answered it. Rejects, for the job to be tried again or
   * ended as interrupted, when the database is away.
   */
  async storeError(error: unknown): Promise<void> {
    if (error instanceof NothingLeft) return;
    if (isDatabaseUnavailable(error)) throw error;
    await this.store(this.#problemAnswer(error));
  }

  #problemAnswer(error: unknown): Answer {
    const known = translateDatabaseError(error);
    const { log } = this.#services;
    const { id, tenant_id } = this.#name;
    if (!(known instanceof ApiError)) {
      const { trace_id } = this.#queued;
      log.error(
        { err: known, trace_id, tenant_id, request_id: id },
        'an asynchronous reaction failed',
      );
    }
    const problem =
      known instanceof ApiError
        ? known
        : new ApiError(
            'internal',
            'An unexpected error occurred; the trace id finds it in the log',
          );
    return problemAnswer(problem);
  }

  /** A run cannot be repeated, so what it came to is not given up for an outage while the job is ours. */
  async whileHeld<T>(work: () => Promise<T>): Promise<T> {
    const { signal } = this.#lease;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (signal.aborted || !isDatabaseUnavailable(error)) throw error;
        await delay(OUTAGE_RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #write(client: PoolClient, answer: Answer): Promise<void> {
    const { dataKeys } = this.#services;
    const name = this.#name;
    const keys = await dataKeys.forTenant(name.tenant_id);
    const result = { answer, used: this.#right?.used ?? [] };
    const due_at_ms = this.#cvcs?.due_at_ms ?? null;
    await insertResult(client, name, sealResult(keys, name, result, due_at_ms), due_at_ms);
    const { callback_url, application_id, key_hash, trace_id } = this.#queued;
    if (callback_url === null) return;
    const job = { tenant_id: name.tenant_id, id: randomUUID(), kind: 'callback' } as const;
    const content = { request_id: name.id, callback_url, application_id, key_hash, trace_id };
    await enqueueJob(client, { ...job, sealed: sealJob(keys, job, content) });
  }
}
