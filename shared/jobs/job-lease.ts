/**
 * The lease on one claimed job, as its work sees it. Everything that counts goes through it and is
 * fenced by its id in the database: a work that was stopped for too long can finish nothing.
 */
import { inTransaction, type Pool, type PoolClient } from '../postgres/pool.ts';
import { beginJob, type ClaimedJob, finishJob, retryJob } from './job-store.ts';

export interface JobLease {
  /** Aborts when the lease is lost, or when this process must end before the work did. */
  readonly signal: AbortSignal;
  /** Call it right before what must happen only once. False: another has the job, do nothing. */
  begin(): Promise<boolean>;
  /**
   * Ends the job and commits what `write` writes with it. False: another has the job; nothing is
   * written, and `write` was not called.
   */
  inTransaction(write: (client: PoolClient) => Promise<void>): Promise<boolean>;
  /**
   * Gives the job back to be run at that time, by the database's clock, as if it had not begun, and
   * commits what `write` writes with it. False: as above.
   */
  retry(run_at_ms: number, write?: (client: PoolClient) => Promise<void>): Promise<boolean>;
}

/** `held`: it is ours as far as we know; `ended`: finished or given back; `lost`: another's. */
export type LeaseState = 'held' | 'ended' | 'lost';

export class HeldLease implements JobLease {
  readonly job: ClaimedJob;
  readonly #pool: Pool;
  readonly #ending = new AbortController();
  #state: LeaseState = 'held';
  #begun = false;
  /** On this process's monotonic clock: another may claim it from then on. */
  #heldUntil: number;

  constructor(pool: Pool, job: ClaimedJob, heldUntil: number) {
    this.#pool = pool;
    this.job = job;
    this.#heldUntil = heldUntil;
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  get state(): LeaseState {
    return this.#state;
  }

  /** Whether this claim has begun what must happen only once. */
  get begun(): boolean {
    return this.#begun;
  }

  async begin(): Promise<boolean> {
    // Before the answer: without one it may have been written.
    this.#begun = true;
    if (!(await beginJob(this.#pool, this.job))) this.lose();
    return this.#state === 'held';
  }

  inTransaction(write: (client: PoolClient) => Promise<void>): Promise<boolean> {
    return this.#end((client) => finishJob(client, this.job), write);
  }

  retry(run_at_ms: number, write = async (_: PoolClient) => {}): Promise<boolean> {
    return this.#end((client) => retryJob(client, this.job, run_at_ms), write);
  }

  /** The fence comes first: it locks the row until all of it is committed. */
  async #end(
    fence: (client: PoolClient) => Promise<boolean>,
    write: (client: PoolClient) => Promise<void>,
  ): Promise<boolean> {
    const isOurs = await inTransaction(this.#pool, async (client) => {
      const held = await fence(client);
      if (held) await write(client);
      return held;
    });
    if (isOurs) this.#state = 'ended';
    else this.lose();
    return isOurs;
  }

  extend(heldUntil: number): void {
    this.#heldUntil = heldUntil;
  }

  isOver(now: number): boolean {
    return now >= this.#heldUntil;
  }

  /** Another has the job, or may have it by now. */
  lose(): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.#ending.abort(new Error('the lease on the job is lost'));
  }

  /** The process ends: the work should, too. */
  abandon(): void {
    this.#ending.abort(new Error('the process ends'));
  }
}
