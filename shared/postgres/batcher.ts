/**
 * Gathers single items into batched statements: sent at once while nothing is in flight, else
 * collected until a batch in flight returns (design section 4, "Reads are batched, not cached").
 * An item is never answered from a statement that began before the item arrived.
 */
import { LRUCache } from 'lru-cache';

/** Rows of one statement at most: more adds latency without saving CPU. */
export const BATCH_ROWS_MAX = 128;
/** Statements under way at once, so that one round trip overlaps the other's work. */
const BATCHES_IN_FLIGHT_MAX = 2;
/** Items of a batch that may each wait in vain, before it looks as if all of them would. */
const HELD_UP_MAX = 2;
/** Who has been here for longer than two waits for a lock is not tried alone: that takes another one. */
const TRIED_ALONE_WITHIN_MS = 2_500;
/** Groups whose batches are known at once; a forgotten one begins anew beside what it still has. */
const GROUPS_MAX = 1_000;

/** Items that were submitted together; they may be sent in several statements. */
interface Call<Result> {
  /** On the monotonic clock. */
  readonly cameAt: number;
  readonly results: Result[];
  left: number;
  resolve(results: Result[]): void;
  reject(error: unknown): void;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly call: Call<Result>;
  /** Of its result among the call's. */
  readonly place: number;
}

export interface BatcherOptions<Item, Result> {
  /** Runs one statement; one result per item, in the order of the items, or the promise of one. */
  run(items: Item[]): Promise<(Result | Promise<Result>)[]>;
  /** Two items with the same identity never share a statement. */
  identity?(item: Item): string;
  /** Nor do two with the same one of these. */
  otherIdentity?(item: Item): string | undefined;
  /** After this error, each item of the batch is tried alone: a bad row fails only itself. */
  isolates?(error: unknown): boolean;
  /**
   * So it is after this one, which takes its time: as long as not too many are held up alone as well.
   * It is the server's word, so no outage, and what waits is tried.
   */
  isHeldUp?(error: unknown): boolean;
  /** After any other of these, what waits fails too: the database is away, and has been waited for. */
  isOutage?(error: unknown): boolean;
  onBatch?(rows: number): void;
}

export interface Batcher<Item, Result> {
  submit(item: Item): Promise<Result>;
}

export interface ListBatcher<Item, Result> extends Batcher<Item, Result> {
  /** Results in the order of the items; rejects with the first error. One promise in place of many. */
  submitAll(items: readonly Item[]): Promise<Result[]>;
}

function settle<Result>(
  { call, place }: Waiting<unknown, Result>,
  result: Result | Promise<Result>,
): void {
  if (result instanceof Promise) {
    result.then((later) => put(call, place, later), call.reject);
  } else put(call, place, result);
}

function put<Result>(call: Call<Result>, place: number, result: Result): void {
  call.results[place] = result;
  call.left -= 1;
  if (call.left === 0) call.resolve(call.results);
}

export function createBatcher<Item, Result>(
  options: BatcherOptions<Item, Result>,
): ListBatcher<Item, Result> {
  const { run, identity, otherIdentity, isolates, isHeldUp, isOutage, onBatch } = options;
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

  const isAway = (error: unknown): boolean =>
    isOutage?.(error) === true && isHeldUp?.(error) !== true;

  /** Stops at an outage, and where too many are held up: the others fail with the same error. */
  async function runEachAlone(batch: Waiting<Item, Result>[]): Promise<void> {
    let [served, heldUp] = [0, 0];
    for (const [index, entry] of batch.entries()) {
      try {
        const [result] = await run([entry.item]);
        settle(entry, result as Result);
        served += 1;
      } catch (error) {
        entry.call.reject(error);
        if (isHeldUp?.(error) === true) heldUp += 1;
        if (!isAway(error) && heldUp < HELD_UP_MAX) continue;
        for (const untried of batch.slice(index + 1)) untried.call.reject(error);
        if (isAway(error) || served === 0) rejectWaiting(error);
        return;
      }
    }
  }

  async function send(batch: Waiting<Item, Result>[]): Promise<void> {
    onBatch?.(batch.length);
    try {
      const results = await run(batch.map((entry) => entry.item));
      for (const [index, entry] of batch.entries()) settle(entry, results[index] as Result);
    } catch (error) {
      const alone = batch.length > 1 ? triedAlone(batch, error) : [];
      for (const entry of batch) if (!alone.includes(entry)) entry.call.reject(error);
      if (alone.length > 0) await runEachAlone(alone);
      else if (isAway(error)) rejectWaiting(error);
    }
  }

  function triedAlone(batch: Waiting<Item, Result>[], error: unknown): Waiting<Item, Result>[] {
    if (isolates?.(error) === true) return batch;
    if (isHeldUp?.(error) !== true) return [];
    const since = performance.now() - TRIED_ALONE_WITHIN_MS;
    return batch.filter(({ call }) => call.cameAt > since);
  }

  function rejectWaiting(error: unknown): void {
    const entries = waiting;
    waiting = [];
    for (const { call } of entries) call.reject(error);
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

  function enter(
    items: readonly Item[],
    resolve: (results: Result[]) => void,
    reject: (error: unknown) => void,
  ): void {
    if (items.length === 0) {
      resolve([]);
      return;
    }
    const call = { cameAt: performance.now(), results: [], left: items.length, resolve, reject };
    for (const [place, item] of items.entries()) waiting.push({ item, call, place });
    schedule();
  }

  return {
    submit: (item) =>
      new Promise((resolve, reject) => {
        enter([item], ([result]) => resolve(result as Result), reject);
      }),
    submitAll: (items) => new Promise((resolve, reject) => enter(items, resolve, reject)),
  };
}

/** Items of one group share statements with each other alone: no group waits for what another one does. */
export function createGroupedBatcher<Item, Result>(
  options: BatcherOptions<Item, Result>,
  groupOf: (item: Item) => string,
): Batcher<Item, Result> {
  const groups = new LRUCache<string, Batcher<Item, Result>>({ max: GROUPS_MAX });
  return {
    submit(item) {
      const name = groupOf(item);
      let group = groups.get(name);
      if (group === undefined) {
        group = createBatcher(options);
        groups.set(name, group);
      }
      return group.submit(item);
    },
  };
}
