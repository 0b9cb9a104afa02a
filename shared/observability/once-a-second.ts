/** Keeps an outage from filling the log: of lines that say the same, one a second, with their number. */

const PAUSE_MS = 1_000;

/**
 * Wraps `write`, which gets how many calls its line stands for. The first call is written at once; those
 * of the following second are counted into the next line.
 */
export function onceASecond<T>(write: (latest: T, count: number) => void): (latest: T) => void {
  let count = 0;
  let nextAt = 0;
  return (latest) => {
    count += 1;
    const now = performance.now();
    if (now < nextAt) return;
    nextAt = now + PAUSE_MS;
    write(latest, count);
    count = 0;
  };
}
