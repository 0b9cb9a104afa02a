/** Keeps an outage from filling the log: of lines that say the same, one a second, with their number. */
import { LRUCache } from 'lru-cache';

const PAUSE_MS = 1_000;
/** Kinds of lines that are known at once; a forgotten one begins anew. */
const KINDS_MAX = 1_000;

/** `more`: for how many the line would stand by itself; 1 unless said. */
type Counted<T> = (latest: T, more?: number) => void;

/**
 * Wraps `write`, which gets how many calls its line stands for. The first call is written at once; those
 * of the following second are counted into the next line.
 */
export function onceASecond<T>(write: (latest: T, count: number) => void): Counted<T> {
  let count = 0;
  let nextAt = 0;
  return (latest, more = 1) => {
    count += more;
    const now = performance.now();
    if (now < nextAt) return;
    nextAt = now + PAUSE_MS;
    write(latest, count);
    count = 0;
  };
}

/** The same for each of the kinds that `kindOf` tells apart. */
export function onceASecondEach<T>(
  kindOf: (latest: T) => string,
  write: (latest: T, count: number) => void,
): Counted<T> {
  const kinds = new LRUCache<string, Counted<T>>({ max: KINDS_MAX });
  return (latest, more) => {
    const kind = kindOf(latest);
    let counted = kinds.get(kind);
    if (counted === undefined) {
      counted = onceASecond(write);
      kinds.set(kind, counted);
    }
    counted(latest, more);
  };
}
