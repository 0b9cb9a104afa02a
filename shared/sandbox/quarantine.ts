/**
 * Where scripts run that ended a host, or may have: one after another, so that what happens there is known
 * to be theirs; beside one that stays for long, others. A script leaves after it has behaved; a suspect that
 * ends well was never at fault. A tenant whose scripts end one host after the other is here as a whole until
 * they do not.
 */
import { LRUCache } from 'lru-cache';
import { monotonicNow } from './protocol.ts';

/** Good runs in a row after which a script is trusted with neighbours again. */
const GOOD_RUNS = 20;
/** Scripts remembered; the oldest offence is forgotten first. */
const SCRIPTS_MAX = 10_000;
/** Hosts that the scripts of a tenant may end within a while before none of them has neighbours. */
const TENANT_OFFENCES_MAX = 3;
/** The same for losses at which it was one of several that may have been it: new versions and decoys add up. */
const TENANT_SUSPICIONS_MAX = 6;
/** Of both, those that are remembered. */
const TIMES_MAX = Math.max(TENANT_OFFENCES_MAX, TENANT_SUSPICIONS_MAX);
const TENANT_WHILE_MS = 60_000;
const TENANTS_MAX = 10_000;
/** Runs of one tenant that wait here: they are served one by one. */
const WAITING_PER_TENANT_MAX = 8;
const WAITING_MAX = 128;
/** A run that takes longer gets others beside it: most that do only wait, and hold no thread. */
const TURN_MS = 1_000;
const STAYING_MAX = 16;
const STAYING_PER_TENANT_MAX = 2;

export interface QuarantinedRun {
  readonly tenant_id: string;
  readonly script_key: string;
}

/** By tenant. An object each, so that one is taken back once, and no other of the same millisecond. */
type Times = LRUCache<string, readonly { readonly at_ms: number }[]>;

export class Quarantine<Run extends QuarantinedRun> {
  readonly #goodRunsLeft = new LRUCache<string, number>({ max: SCRIPTS_MAX });
  /** Tenant → when its scripts ended hosts, the last few times. */
  readonly #offences: Times = new LRUCache({ max: TENANTS_MAX });
  /** Tenant → when its scripts may have ended hosts, the last few times. */
  readonly #suspicions: Times = new LRUCache({ max: TENANTS_MAX });
  /** Runs that are to show what they are, and what takes the suspicion back. */
  readonly #doubted = new WeakMap<Run, () => void>();
  readonly #start: (run: Run) => void;
  readonly #now: () => number;
  #waiting: Run[] = [];
  #current: Run | undefined;
  #turn: NodeJS.Timeout | undefined;
  /** Runs whose turn is over and that have not ended. */
  readonly #staying = new Set<Run>();

  /** `start`: sends the run to the quarantine host; `leave` must follow. `now`: in milliseconds. */
  constructor(start: (run: Run) => void, now = monotonicNow) {
    this.#start = start;
    this.#now = now;
  }

  /** Whether this run belongs here. `isDear`: the next lost host could not be replaced at once. */
  holds({ script_key, tenant_id }: QuarantinedRun, isDear: boolean): boolean {
    if (this.#goodRunsLeft.has(script_key)) return true;
    const since = this.#now() - TENANT_WHILE_MS;
    const recent = (of: Times): number =>
      (of.get(tenant_id) ?? []).filter(({ at_ms }) => at_ms > since).length;
    if (recent(this.#suspicions) >= TENANT_SUSPICIONS_MAX) return true;
    return recent(this.#offences) >= (isDear ? 1 : TENANT_OFFENCES_MAX);
  }

  /** The script has ended a host, for certain. Returns what takes that back. */
  convict({ script_key, tenant_id }: QuarantinedRun): () => void {
    return both(this.#hold(script_key), this.#note(this.#offences, tenant_id));
  }

  /** The script may have ended a host: it is here until it has behaved. Returns as `convict`. */
  suspect({ script_key, tenant_id }: QuarantinedRun): () => void {
    return both(this.#hold(script_key), this.#note(this.#suspicions, tenant_id));
  }

  /** The same of one that will run again, which shows what it is. Returns as `convict`. */
  doubt(run: Run): () => void {
    const acquit = this.#note(this.#suspicions, run.tenant_id);
    this.#doubted.set(run, acquit);
    return acquit;
  }

  #hold(script_key: string): () => void {
    const before = this.#goodRunsLeft.get(script_key);
    this.#goodRunsLeft.set(script_key, GOOD_RUNS);
    return () => {
      if (before === undefined) this.#goodRunsLeft.delete(script_key);
      else this.#goodRunsLeft.set(script_key, before);
    };
  }

  #note(times: Times, tenant_id: string): () => void {
    const time = { at_ms: this.#now() };
    times.set(tenant_id, [...(times.get(tenant_id) ?? []), time].slice(-TIMES_MAX));
    return () => {
      const left = (times.get(tenant_id) ?? []).filter((known) => known !== time);
      times.set(tenant_id, left);
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

  /** Whether it runs here now. */
  has(run: Run): boolean {
    return this.#current === run || this.#staying.has(run);
  }

  /** Whether it does, with nobody beside it. */
  isAlone(run: Run): boolean {
    return this.#current === run && this.#staying.size === 0;
  }

  /** The run has ended. `good`: without harm to the host. */
  leave(run: Run, good: boolean): void {
    if (good) this.#doubted.get(run)?.();
    const left = this.#goodRunsLeft.get(run.script_key);
    if (good && left !== undefined) {
      if (left <= 1) this.#goodRunsLeft.delete(run.script_key);
      else this.#goodRunsLeft.set(run.script_key, left - 1);
    }
    this.#staying.delete(run);
    if (this.#current === run) this.#current = undefined;
    this.#next();
  }

  /** Tenants take turns: the one that was served last goes behind the others that wait. */
  #next(): void {
    if (this.#waiting.length === 0) return;
    const run = this.#nextWaiting();
    if (this.#current !== undefined || run === undefined) return;
    const left = this.#waiting.filter((waiting) => waiting !== run);
    const others = left.filter(({ tenant_id }) => tenant_id !== run.tenant_id);
    const own = left.filter(({ tenant_id }) => tenant_id === run.tenant_id);
    this.#waiting = [...others, ...own];
    this.#current = run;
    this.#endTurnLater(run);
    this.#start(run);
  }

  /** The first of a tenant that has not got enough here already. */
  #nextWaiting(): Run | undefined {
    const tenants = Array.from(this.#staying, ({ tenant_id }) => tenant_id);
    return this.#waiting.find(({ tenant_id }) => {
      return tenants.filter((tenant) => tenant === tenant_id).length < STAYING_PER_TENANT_MAX;
    });
  }

  /** Nobody waits for as long as another one likes to stay. */
  #endTurnLater(run: Run): void {
    const end = (): void => {
      if (this.#current !== run) return;
      const isFull = this.#staying.size >= STAYING_MAX;
      if (isFull || this.#nextWaiting() === undefined) this.#endTurnLater(run);
      else {
        this.#staying.add(run);
        this.#current = undefined;
        this.#next();
      }
    };
    clearTimeout(this.#turn);
    this.#turn = setTimeout(end, TURN_MS).unref();
  }
}

const both =
  (first: () => void, second: () => void): (() => void) =>
  () => {
    first();
    second();
  };
