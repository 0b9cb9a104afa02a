/**
 * Runs by their id, for as long as they last. Not a Map: one that is always filled and emptied is rebuilt
 * again and again, and V8 leaves in each old table a link to the next. Once one of them has come into the
 * old generation, all runs that were in later ones stay in memory, with all they hold, until the next
 * major collection (measured: a sixth of everything a gateway allocated, and of its CPU).
 */

interface Entry<Run> {
  readonly id: number;
  readonly run: Run;
  next: Entry<Run> | undefined;
}

/** Ids rise one by one, so that what is in here at a time is spread evenly. A power of two. */
const BUCKETS = 1024;

export class RunTable<Run> {
  readonly #buckets = new Array<Entry<Run> | undefined>(BUCKETS).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Run | undefined {
    let entry = this.#buckets[id % BUCKETS];
    while (entry !== undefined && entry.id !== id) entry = entry.next;
    return entry?.run;
  }

  has(id: number): boolean {
    return this.get(id) !== undefined;
  }

  /** In place of what was there under this id. */
  set(id: number, run: Run): void {
    this.delete(id);
    const bucket = id % BUCKETS;
    this.#buckets[bucket] = { id, run, next: this.#buckets[bucket] };
    this.#size += 1;
  }

  /** Whether it was there. */
  delete(id: number): boolean {
    const bucket = id % BUCKETS;
    let before: Entry<Run> | undefined;
    let entry = this.#buckets[bucket];
    while (entry !== undefined && entry.id !== id) {
      before = entry;
      entry = entry.next;
    }
    if (entry === undefined) return false;
    if (before === undefined) this.#buckets[bucket] = entry.next;
    else before.next = entry.next;
    // Nothing that is dead leads to what is alive.
    entry.next = undefined;
    this.#size -= 1;
    return true;
  }

  /** Of what is in here now, in no order. */
  values(): Run[] {
    const found: Run[] = [];
    for (const first of this.#buckets) {
      for (let entry = first; entry !== undefined; entry = entry.next) found.push(entry.run);
    }
    return found;
  }

  clear(): void {
    this.#buckets.fill(undefined);
    this.#size = 0;
  }
}
