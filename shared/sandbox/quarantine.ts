/**
 * Where scripts run that ended a host, or may have: one at a time, so that what happens there is known
 * to be theirs. A script leaves after it has behaved; a suspect that ends well was never at fault.
 */
import { LRUCache } from 'lru-cache';

/** Good runs in a row after which a script is trusted with neighbours again. */
const GOOD_RUNS = 20;
/** Scripts remembered; the oldest offence is forgotten first. */
const SCRIPTS_MAX = 10_000;
/** Runs of one tenant that wait here: they are served one by one. */
const WAITING_PER_TENANT_MAX = 8;
const WAITING_MAX = 128;

export interface QuarantinedRun {
  readonly tenant_id: string;
  readonly script_key: string;
}

export class Quarantine<Run extends QuarantinedRun> {
  readonly #goodRunsLeft = new LRUCache<string, number>({ max: SCRIPTS_MAX });
  readonly #start: (run: Run) => void;
  #waiting: Run[] = [];
  #current: Run | undefined;

  /** `start`: sends the run to the quarantine host; `leave` must follow. */
  constructor(start: (run: Run) => void) {
    this.#start = start;
  }

  /** Whether runs of this script belong here. */
  holds(script_key: string): boolean {
    return this.#goodRunsLeft.has(script_key);
  }

  /** The script has ended a host. */
  convict(script_key: string): void {
    this.#goodRunsLeft.set(script_key, GOOD_RUNS);
  }

  /** Starts the run or lets it wait. `false`: too many wait already. */
  enter(run: Run): boolean {
    const own = this.#waiting.filter(({ tenant_id }) => tenant_id === run.tenant_id);
    if (own.length >= WAITING_PER_TENANT_MAX || this.#waiting.length >= WAITING_MAX) return false;
    this.#waiting.push(run);
    this.#next();
    return true;
  }

  /** The run has ended. `good`: without harm to the host. */
  leave(run: Run, good: boolean): void {
    const left = this.#goodRunsLeft.get(run.script_key);
    if (good && left !== undefined) {
      if (left <= 1) this.#goodRunsLeft.delete(run.script_key);
      else this.#goodRunsLeft.set(run.script_key, left - 1);
    }
    if (this.#current !== run) return;
    this.#current = undefined;
    this.#next();
  }

  /** Tenants take turns: the one that was served last goes behind the others that wait. */
  #next(): void {
    if (this.#current !== undefined) return;
    const run = this.#waiting.shift();
    if (run === undefined) return;
    const others = this.#waiting.filter(({ tenant_id }) => tenant_id !== run.tenant_id);
    const own = this.#waiting.filter(({ tenant_id }) => tenant_id === run.tenant_id);
    this.#waiting = [...others, ...own];
    this.#current = run;
    this.#start(run);
  }
}
