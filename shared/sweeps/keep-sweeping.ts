/**
 * Sweeps in turn until told to stop, one batch at a time and with pauses as long as the batches, so that
 * requests do not notice. Nothing depends on it: what is due is not served, swept or not.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../observability/logger.ts';

export interface Sweep {
  /** What is swept, as metrics and log lines name it. */
  readonly subject: string;
  /** How often to look when there was nothing left. */
  readonly every_ms: number;
  /** Rows of one batch at most, unless the usual ones. */
  readonly batch_rows?: number;
  /** Handles at most `limit` rows; returns how many. As many: there may be more. */
  run(limit: number): Promise<number>;
}

export interface SweepingOptions {
  readonly sweeps: readonly Sweep[];
  /** Told what was handled. */
  readonly onRows: (subject: string, count: number) => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Some 20 ms of one core: requests that come meanwhile wait for no longer. */
const BATCH_ROWS_DEFAULT = 500;
/** From one full batch to the next at the least: at most 10,000 rows a second. */
const BATCH_EVERY_MS = 50;
const BATCH_ROWS_MIN = 20;
/** A batch that takes longer is made smaller: far below the limit of a statement. */
const BATCH_MS_MAX = 200;
/** One that takes less may grow again. */
const BATCH_MS_GOOD = 80;
const PAUSE_MS_MAX = 250;

interface Turn {
  readonly sweep: Sweep;
  limit: number;
  dueAt: number;
}

/** Settles after the batch at hand once `signal` aborts. */
export async function keepSweeping({
  sweeps,
  onRows,
  log,
  signal,
}: SweepingOptions): Promise<void> {
  const turns: Turn[] = sweeps.map((sweep) => ({ sweep, limit: sizeOf(sweep), dueAt: 0 }));
  const pause = (ms: number) => delay(ms, undefined, { signal }).catch(() => {});
  while (!signal.aborted) {
    for (const turn of turns) {
      if (signal.aborted) return;
      const began = performance.now();
      if (began < turn.dueAt) continue;
      const count = await runTurn(turn, log);
      const elapsed = performance.now() - began;
      if (count > 0) onRows(turn.sweep.subject, count);
      if (count > 0) await pause(pauseAfter(elapsed, count / sizeOf(turn.sweep)));
    }
    const next = Math.min(...turns.map(({ dueAt }) => dueAt));
    await pause(Math.max(0, next - performance.now()));
  }
}

const sizeOf = ({ batch_rows = BATCH_ROWS_DEFAULT }: Sweep): number => batch_rows;

/** `share`: how much of a full batch it was. */
function pauseAfter(elapsed: number, share: number): number {
  return Math.min(PAUSE_MS_MAX, Math.max(elapsed, share * BATCH_EVERY_MS - elapsed));
}

async function runTurn(turn: Turn, log: Logger): Promise<number> {
  const { sweep, limit } = turn;
  const began = performance.now();
  let count = 0;
  let failed = false;
  try {
    count = await sweep.run(limit);
  } catch (error) {
    failed = true;
    log.warn({ err: error, resource: sweep.subject }, 'a sweep failed; it is tried again');
  }
  const elapsed = performance.now() - began;
  turn.dueAt = count >= limit ? 0 : began + sweep.every_ms;
  if (failed || elapsed > BATCH_MS_MAX) turn.limit = Math.max(BATCH_ROWS_MIN, limit >> 1);
  else if (elapsed < BATCH_MS_GOOD) turn.limit = Math.min(sizeOf(sweep), limit * 2);
  return count;
}
