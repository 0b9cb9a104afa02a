/**
 * Entries of accesses that changed nothing, gathered in memory and written in batches some 50 ms later.
 * Nothing is dropped: while Postgres is away the queue grows to its bound, and whoever comes then waits
 * with the answer, which is a 503 when there is no room in time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../errors.ts';
import type { AuditMetrics } from '../observability/audit-metrics.ts';
import type { Logger } from '../observability/logger.ts';
import { isRowError } from '../postgres/database-error.ts';
import type { Queryable } from '../postgres/pool.ts';
import type { AuditEntry } from './audit-entry.ts';
import { insertAuditRows } from './insert-audit-rows.ts';

/** Rows of one statement: some 20 ms. */
const BATCH_ROWS_MAX = 1_000;
/** A database that is too slow for so many is asked for fewer. */
const BATCH_ROWS_MIN = 20;
/** With the statement itself, rows are at most 100 ms behind. */
const GATHER_MS = 50;
/** Some 20 MB: several seconds of reads at full speed. */
const QUEUE_ROWS_MAX = 50_000;
const ROOM_TIMEOUT_MS = 2_000;
const RETRY_MS = 200;
/** Of the 28 s that a process has to drain. */
const CLOSE_TIMEOUT_MS = 10_000;

export interface AuditQueueOptions {
  readonly db: Queryable;
  readonly log: Logger;
  readonly metrics: AuditMetrics;
  /** Rows in memory at most. */
  readonly rowsMax?: number;
}

export class AuditQueue {
  readonly #options: AuditQueueOptions;
  readonly #rowsMax: number;
  /** The oldest first; what is being written stays until it is committed. */
  #entries: AuditEntry[] = [];
  #times: number[] = [];
  /** Each lets in somebody who waits for room. */
  readonly #waiting = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #closing = false;
  #batchRows = BATCH_ROWS_MAX;

  constructor(options: AuditQueueOptions) {
    this.#options = options;
    this.#rowsMax = options.rowsMax ?? QUEUE_ROWS_MAX;
    options.metrics.observeQueue(() => this.#entries.length);
  }

  /** Takes them at once while there is room. Rejects with 503 when there is none in time. */
  record(entries: readonly AuditEntry[]): undefined | Promise<void> {
    if (this.#entries.length >= this.#rowsMax) return this.#waitForRoom(entries);
    this.#take(entries);
    return undefined;
  }

  /** Settles when everything recorded before is committed. */
  async flush(): Promise<void> {
    while (this.#entries.length > 0) await this.#start();
  }

  /** Writes what is left, unless the database stays away. */
  async close(): Promise<void> {
    const giveUp = new AbortController();
    const tooLate = delay(CLOSE_TIMEOUT_MS, undefined, { signal: giveUp.signal });
    await Promise.race([this.flush(), tooLate.catch(() => undefined)]);
    giveUp.abort();
    this.#closing = true;
    clearTimeout(this.#timer);
    const count = this.#entries.length;
    if (count === 0) return;
    this.#options.metrics.lost.inc(count);
    this.#options.log.error({ count }, 'audit rows were lost: the database stayed away');
  }

  #take(entries: readonly AuditEntry[]): void {
    const now = performance.now();
    for (const entry of entries) {
      this.#entries.push(entry);
      this.#times.push(now);
    }
    this.#schedule();
  }

  #waitForRoom(entries: readonly AuditEntry[]): Promise<void> {
    this.#options.metrics.waits.inc();
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => {
        this.#waiting.delete(admit);
        reject(noRoom());
      }, ROOM_TIMEOUT_MS);
      const admit = (): void => {
        clearTimeout(deadline);
        this.#waiting.delete(admit);
        this.#take(entries);
        resolve();
      };
      this.#waiting.add(admit);
    });
  }

  #schedule(): void {
    if (this.#writing !== undefined || this.#closing) return;
    const [oldest] = this.#times;
    if (oldest === undefined) return;
    if (this.#entries.length >= BATCH_ROWS_MAX) void this.#start();
    else {
      const wait_ms = Math.max(0, oldest + GATHER_MS - performance.now());
      this.#timer ??= setTimeout(() => void this.#start(), wait_ms);
    }
  }

  /** Writes one batch, or waits for the one that is being written. Never rejects. */
  #start(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing ??= this.#writeBatch().finally(() => {
      this.#writing = undefined;
      this.#schedule();
    });
    return this.#writing;
  }

  async #writeBatch(): Promise<void> {
    const batch = this.#entries.slice(0, this.#batchRows);
    const times = this.#times.slice(0, this.#batchRows);
    const done = await this.#insert(batch, times);
    if (done > 0) this.#batchRows = Math.min(BATCH_ROWS_MAX, this.#batchRows * 2);
    else {
      this.#batchRows = Math.max(BATCH_ROWS_MIN, this.#batchRows >> 1);
      await delay(RETRY_MS);
    }
    this.#entries.splice(0, done);
    this.#times.splice(0, done);
    for (const admit of this.#waiting) {
      if (this.#entries.length >= this.#rowsMax) break;
      admit();
    }
  }

  /** How many of the rows, from the first on, are done with. */
  async #insert(batch: readonly AuditEntry[], times: readonly number[]): Promise<number> {
    const { db, log, metrics } = this.#options;
    try {
      await insertAuditRows(db, batch, times);
      metrics.rows.inc(batch.length);
      return batch.length;
    } catch (error) {
      const [entry] = batch;
      if (!isRowError(error) || entry === undefined) {
        log.warn({ err: error, count: this.#entries.length }, 'audit rows are not written yet');
        return 0;
      }
      // One row that the database refuses must not keep all others out: halves find it.
      if (batch.length > 1) return this.#insertHalves(batch, times);
      metrics.lost.inc();
      log.error({ err: error, trace_id: entry.trace_id }, 'an audit row was refused');
      return 1;
    }
  }

  async #insertHalves(batch: readonly AuditEntry[], times: readonly number[]): Promise<number> {
    const middle = Math.ceil(batch.length / 2);
    const done = await this.#insert(batch.slice(0, middle), times.slice(0, middle));
    if (done < middle) return done;
    return done + (await this.#insert(batch.slice(middle), times.slice(middle)));
  }
}

function noRoom(): ApiError {
  const detail = 'The audit trail cannot be written at the moment; try again';
  return new ApiError('unavailable', detail, { headers: { 'retry-after': '1' } });
}
