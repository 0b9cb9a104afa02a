/**
 * Where scripts run that ended a host, or may have: one at a time, so that what happens there is known
 * to be theirs. A script leaves after it has behaved; a suspect that ends well was never at fault. A
 * tenant whose scripts end one host after the other is here as a whole until they do not.
 */
import { LRUCache } from 'lru-cache';
import { monotonicNow } from './protocol.ts';

/** Good runs in a row after which a script is trusted with neighbours again. */
const GOOD_RUNS = 20;
/** Scripts remembered; the oldest offence is forgotten first. */
const SCRIPTS_MAX = 10_000;
/** Hosts that the scripts of a tenant may end within a while before none of them has neighbours. */
const TENANT_OFFENCES_MAX = 3;
const TENANT_WHILE_MS = 60_000;
const TENANTS_MAX = 10_000;
/** Runs of one tenant that wait here: they are served one by one. */
const WAITING_PER_TENANT_MAX = 8;
const WAITING_MAX = 128;

export interface QuarantinedRun {
  readonly tenant_id: string;
  readonly script_key: string;
}

export class Quarantine<Run extends QuarantinedRun> {
  readonly #goodRunsLeft = new LRUCache<string, number>({ max: SCRIPTS_MAX });
  /** Tenant → when its scripts ended hosts, the last few times. */
  readonly #offences = new LRUCache<string, readonly number[]>({ max: TENANTS_MAX });
  readonly #start: (run: Run) => void;
  readonly #now: () => number;
  #waiting: Run[] = [];
  #current: Run | undefined;

  /** `start`: sends the run to the quarantine host; `leave` must follow. `now`: in milliseconds. */
  constructor(start: (run: Run) => void, now = monotonicNow) {
    this.#start = start;
    this.#now = now;
  }

  /** Whether this run belongs here. `isDear`: the next lost host could not be replaced at once. */
  holds({ script_key, tenant_id }: QuarantinedRun, isDear: boolean): boolean {
    if (this.#goodRunsLeft.has(script_key)) return true;
    const since = this.#now() - TENANT_WHILE_MS;
    const recent = (this.#offences.get(tenant_id) ?? []).filter((at_ms) => at_ms > since);
    return recent.length >= (isDear ? 1 : TENANT_OFFENCES_MAX);
  }

  /** The script has ended a host, for certain. Returns what takes that back. */
  convict(run: QuarantinedRun): () => void {
    const acquit = this.suspect(run);
    const { tenant_id } = run;
    const before = this.#offences.get(tenant_id) ?? [];
    const at_ms = this.#now();
    this.#offences.set(tenant_id, [...before, at_ms].slice(-TENANT_OFFENCES_MAX));
    return () => {
      acquit();
      const left = (this.#offences.get(tenant_id) ?? []).filter((offence) => offence !== at_ms);
      this.#offences.set(tenant_id, left);
    };
  }

  /** The script may have ended a host: its fault alone, until it has behaved. Returns as `convict`. */
  suspect({ script_key }: QuarantinedRun): () => void {
    const before = this.#goodRunsLeft.get(script_key);
    this.#goodRunsLeft.set(script_key, GOOD_RUNS);
    return () => {
      if (before === undefined) this.#goodRunsLeft.delete(script_key);
      else this.#goodRunsLeft.set(script_key, before);
    };
  }

  /** Starts the run or lets it wait. `false`: too many wait already. */
  enter(run: Run): boolean {
    const own = this.#waiting.filter(({ tenant_id }) => tenant_id === run.tenant_id);
    if (own.length >= WAITING_PER_TENANT_MAX || this.#waiting.length >= WAITING_MAX) return false;
    this.#waiting.push(run);
    this.#next();
    return true;
  }

  /** Whether it is the one that runs here now, with nobody beside it. */
  isCurrent(run: Run): boolean {
    return this.#current === run;
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
