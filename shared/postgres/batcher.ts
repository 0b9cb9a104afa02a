/**
 * Gathers single items into batched statements: sent at once while nothing is in flight, else
 * collected until a batch in flight returns (design section 4, "Reads are batched, not cached").
 * An item is never answered from a statement that began before the item arrived.
 */

/** Rows of one statement at most: more adds latency without saving CPU. */
export const BATCH_ROWS_MAX = 128;
/** Statements under way at once, so that one round trip overlaps the other's work. */
const BATCHES_IN_FLIGHT_MAX = 2;

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result | PromiseLike<Result>): void;
  reject(error: unknown): void;
}

export interface BatcherOptions<Item, Result> {
  /** Runs one statement; one result per item, in the order of the items, or the promise of one. */
  run(items: Item[]): Promise<(Result | PromiseLike<Result>)[]>;
  /** Two items with the same identity never share a statement. */
  identity?(item: Item): string;
  /** Nor do two with the same one of these. */
  otherIdentity?(item: Item): string | undefined;
  /** After this error, each item of the batch is tried alone: a bad row fails only itself. */
  isolates?(error: unknown): boolean;
  /** After this error, what waits fails too: the database is away, and has been waited for. */
  isOutage?(error: unknown): boolean;
  onBatch?(rows: number): void;
}

export interface Batcher<Item, Result> {
  submit(item: Item): Promise<Result>;
}

export function createBatcher<Item, Result>(
  options: BatcherOptions<Item, Result>,
): Batcher<Item, Result> {
  const { run, identity, otherIdentity, isolates, isOutage, onBatch } = options;
  let waiting: Waiting<Item, Result>[] = [];
  let inFlight = 0;
  let scheduled = false;

  function take(): Waiting<Item, Result>[] {
    if (identity === undefined) {
      const batch = waiting.slice(0, BATCH_ROWS_MAX);
      waiting = waiting.length > BATCH_ROWS_MAX ? waiting.slice(BATCH_ROWS_MAX) : [];
      return batch;
    }
    const seen = new Set<string>();
    const batch: Waiting<Item, Result>[] = [];
    const left: Waiting<Item, Result>[] = [];
    for (const entry of waiting) {
      const name = identity(entry.item);
      const other = otherIdentity?.(entry.item);
      const isNew = !seen.has(name) && (other === undefined || !seen.has(other));
      if (batch.length < BATCH_ROWS_MAX && isNew) {
        seen.add(name);
        if (other !== undefined) seen.add(other);
        batch.push(entry);
      } else {
        left.push(entry);
      }
    }
    waiting = left;
    return batch;
  }

  async function runAlone(entry: Waiting<Item, Result>): Promise<void> {
    try {
      const [result] = await run([entry.item]);
      entry.resolve(result as Result);
    } catch (error) {
      entry.reject(error);
    }
  }

  async function send(batch: Waiting<Item, Result>[]): Promise<void> {
    onBatch?.(batch.length);
    try {
      const results = await run(batch.map((entry) => entry.item));
      for (let i = 0; i < batch.length; i += 1) batch[i]?.resolve(results[i] as Result);
    } catch (error) {
      if (batch.length > 1 && isolates?.(error) === true) {
        for (const entry of batch) await runAlone(entry);
      } else {
        for (const entry of batch) entry.reject(error);
      }
      if (isOutage?.(error) === true) rejectWaiting(error);
    }
  }

  function rejectWaiting(error: unknown): void {
    const entries = waiting;
    waiting = [];
    for (const entry of entries) entry.reject(error);
  }

  function dispatch(): void {
    scheduled = false;
    while (waiting.length > 0 && inFlight < BATCHES_IN_FLIGHT_MAX) {
      inFlight += 1;
      void send(take()).then(() => {
        inFlight -= 1;
        if (waiting.length > 0) schedule();
      });
    }
  }

  // All requests of one turn of the event loop are handled before the microtask runs.
  function schedule(): void {
    if (scheduled || inFlight >= BATCHES_IN_FLIGHT_MAX) return;
    scheduled = true;
    queueMicrotask(dispatch);
  }

  return {
    submit: (item) =>
      new Promise<Result>((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        schedule();
      }),
  };
}
