/** The order in which a request with an idempotency key looks for its answer and tries to make one. */
import { ApiError } from '../errors.ts';
import { InProgressError, inProgress } from './claim.ts';
import { isAnsweredMeanwhile } from './record-store.ts';

export interface Once<T> {
  /** The answer that was kept; `undefined` when there is none. */
  look(): Promise<T | undefined>;
  /** Makes it and keeps it, or fails and keeps nothing. */
  run(): Promise<T>;
  /** False where `run` finds out by itself that there is one, which saves looking first. */
  readonly looksFirst?: false | undefined;
  /** Told why it was not done. */
  readonly notDone?: (why: NotDone) => void;
}

/** It had been done before, or a twin is at work on it. */
export type NotDone = 'replayed' | 'in_progress';

/** Twins that take the key in turn, and fail, are told of one another after this. */
const RUNS_MAX = 3;

/** Throws 409 when twins keep having the key and leave no answer. */
export async function runOnce<T>(once: Once<T>): Promise<T> {
  const { look, notDone } = once;
  const lookAndTell = async (): Promise<T | undefined> => {
    const kept = await look();
    if (kept !== undefined) notDone?.('replayed');
    return kept;
  };
  try {
    return await runUnlessKept({ ...once, look: lookAndTell });
  } catch (error) {
    if (error instanceof InProgressError) notDone?.('in_progress');
    throw error;
  }
}

async function runUnlessKept<T>({ look, run, looksFirst }: Once<T>): Promise<T> {
  const kept = looksFirst === false ? undefined : await look();
  if (kept !== undefined) return kept;
  for (let runs = 1; runs <= RUNS_MAX; runs += 1) {
    try {
      return await run();
    } catch (error) {
      const isAnswered = isAnsweredMeanwhile(error);
      // A twin's effect may be what it was refused for: an id that is taken, a transaction that ended.
      const isRefused = error instanceof ApiError && error.status < 500;
      const byTwin = isAnswered || isRefused ? await look() : undefined;
      if (byTwin !== undefined) return byTwin;
      // What was found is gone: it was too old to count, or a twin has failed since.
      if (!isAnswered) throw error;
    }
  }
  throw inProgress();
}
