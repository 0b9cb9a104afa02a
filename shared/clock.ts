/**
 * A process' estimate of the database's clock, corrected by every answer that carries the time. Good
 * for labels that the database checks again; decisions about time are made in SQL.
 */

export interface DatabaseClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** The database's time in an answer that has just arrived. */
  observe(nowMs: number): void;
}

export function createDatabaseClock(): DatabaseClock {
  let offsetMs = 0;
  return {
    now: () => Math.round(Date.now() + offsetMs),
    observe: (nowMs) => {
      offsetMs = nowMs - Date.now();
    },
  };
}
