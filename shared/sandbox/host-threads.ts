/**
 * Which run goes to which thread of a host. A thread serves one tenant at a time, so that code that holds
 * its thread delays nobody else's; only who would wait for long shares one. Runs that find no thread wait
 * here in order. A run that waits for an answer from outside takes no room.
 */
import type { FrameStream } from './frames.ts';
import { monotonicNow, type RunMessage, type ThreadMessage } from './protocol.ts';
import { RunTable } from './run-table.ts';

/**
 * Runs of one tenant that share a thread, without those that wait for an answer. Many at a time make
 * messages few: with 8, a run in a kept context cost a fifth more.
 */
const RUNS_PER_THREAD_MAX = 32;
/** With more, waiting ones included, another thread is better if there is one: each has a context. */
const CONTEXTS_PER_THREAD_GOOD = 32;
/** Who has waited longer for a thread gets a place beside another tenant's runs. */
const SHARE_AFTER_MS = 100;
/** As many isolates as a thread keeps at most: of these scripts it has the source, or says that it has not. */
const KNOWN_SCRIPTS_MAX = 24;

/** What is sent of a run. */
export interface HostRun {
  readonly message: RunMessage;
  readonly source: string;
  /** JSON text of what the script's function gets. */
  readonly request: string;
}

interface Thread {
  readonly index: number;
  readonly stream: FrameStream<RunMessage>;
  /** Who has runs here that have not ended. */
  readonly tenants: TenantRuns[];
  runs: number;
  /** Of them, those that wait for an answer from outside. */
  parked: number;
  /** Scripts that were sent here, the last used last: their isolates are likely warm. */
  readonly script_keys: Set<string>;
  last_key: string | undefined;
  /** Whether customer code was seen to hold it, and nothing was heard of it since. */
  isHeld: boolean;
}

interface TenantRuns {
  readonly tenant_id: string;
  runs: number;
}

interface PlacedRun {
  readonly run: HostRun;
  /** When it began to wait for one. */
  since_ms: number;
  /** `undefined`: it waits for one. */
  thread: Thread | undefined;
  withSource: boolean;
  /** Calls that have not been answered. */
  calls: Set<number> | undefined;
}

export class HostThreads {
  readonly #threads: readonly Thread[];
  readonly #runs = new RunTable<PlacedRun>();
  #waiting: PlacedRun[] = [];
  #isOpen = false;
  #isPlanned = false;

  /** One per thread: where its runs are sent. */
  constructor(streams: readonly FrameStream<RunMessage>[]) {
    this.#threads = streams.map((stream, index) => ({
      ...{ index, stream, tenants: [], runs: 0, parked: 0 },
      ...{ script_keys: new Set(), last_key: undefined, isHeld: false },
    }));
  }

  /** Runs that are in the host or wait for one of its threads. */
  get size(): number {
    return this.#runs.size;
  }

  has(id: number): boolean {
    return this.#runs.has(id);
  }

  /** Of all of them. */
  messages(): RunMessage[] {
    return this.#runs.values().map(({ run }) => run.message);
  }

  /** Ids of those that a thread has got, or is about to. */
  placedIds(): number[] {
    const placed = this.#runs.values().filter(({ thread }) => thread !== undefined);
    return placed.map(({ run }) => run.message.id);
  }

  /** The threads can work: no script runs while its process may still be root. */
  open(): void {
    this.#isOpen = true;
    this.placeWaiting();
  }

  add(run: HostRun): void {
    const placed: PlacedRun = {
      ...{ run, since_ms: 0, thread: undefined, withSource: false, calls: undefined },
    };
    this.#runs.set(run.message.id, placed);
    const thread = this.#isOpen ? this.#threadFor(run.message) : undefined;
    if (thread !== undefined) this.#assign(thread, placed);
    else {
      placed.since_ms = monotonicNow();
      this.#waiting.push(placed);
    }
  }

  /** Forgets a run: its end has been told, or nobody waits for it any more. */
  delete(id: number): void {
    const placed = this.#runs.get(id);
    if (placed === undefined) return;
    this.#runs.delete(id);
    if (placed.thread === undefined) this.#waiting = this.#waiting.filter((run) => run !== placed);
    else leave(placed.thread, placed);
  }

  clear(): void {
    this.#runs.clear();
    this.#waiting = [];
  }

  /**
   * Notes what a thread says. Returns whether it is of a run that is there, and is news for its owner.
   * Throws when no thread of ours would say that.
   */
  take(index: number, message: ThreadMessage): boolean {
    const placed = this.#runs.get(message.id);
    const thread = placed?.thread;
    if (placed === undefined || thread?.index !== index) return false;
    thread.isHeld = false;
    if (message.kind === 'unknown_script') {
      if (placed.withSource) throw new TypeError('a script that was sent is not known');
      this.#send(thread, placed, true);
      return false;
    }
    if (message.kind === 'result') {
      this.#runs.delete(message.id);
      leave(thread, placed);
    } else if (message.kind === 'call') openCall(thread, placed, message.call);
    else closeCall(thread, placed, message.call);
    if (this.#waiting.length > 0) this.#placeWaitingLater();
    return true;
  }

  /** The thread to which the answer of a call goes; `undefined` when its run has ended. */
  answered(id: number, call: number): number | undefined {
    const placed = this.#runs.get(id);
    if (placed?.thread === undefined) return undefined;
    closeCall(placed.thread, placed, call);
    return placed.thread.index;
  }

  /** Only these runs were seen to hold their thread. */
  noteHolders(ids: readonly number[]): void {
    for (const thread of this.#threads) thread.isHeld = false;
    for (const id of ids) {
      const thread = this.#runs.get(id)?.thread;
      if (thread !== undefined) thread.isHeld = true;
    }
  }

  /**
   * Places what waits, in order, but a tenant without a thread does not hold up those behind it. To be
   * called now and then as well: who has waited for long is content with less.
   */
  placeWaiting(): void {
    if (this.#waiting.length === 0 || !this.#isOpen) return;
    const now_ms = monotonicNow();
    /** Nothing is free for these, so that a long list is not looked through for each of its runs. */
    const without = new Set<string>();
    this.#waiting = this.#waiting.filter((placed) => {
      const { message } = placed.run;
      const isLong = now_ms - placed.since_ms > SHARE_AFTER_MS;
      if (without.has(message.tenant_id) && !isLong) return true;
      const thread = this.#threadFor(message) ?? (isLong ? this.#sharedThread() : undefined);
      if (thread === undefined) without.add(message.tenant_id);
      else this.#assign(thread, placed);
      return thread === undefined;
    });
  }

  #placeWaitingLater(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(() => {
      this.#isPlanned = false;
      this.placeWaiting();
    });
  }

  #threadFor({ tenant_id, script_key }: RunMessage): Thread | undefined {
    let [own, warm, coldest, open, free]: [number, ...(Thread | undefined)[]] = [0];
    for (const thread of this.#threads) {
      if (thread.runs === 0) {
        if (thread.script_keys.has(script_key)) warm ??= thread;
        const size = coldest?.script_keys.size ?? Number.POSITIVE_INFINITY;
        if (thread.script_keys.size < size) coldest = thread;
      } else if (thread.tenants.some((tenant) => tenant.tenant_id === tenant_id)) {
        own += 1;
        if (!hasRoom(thread)) continue;
        if (open === undefined || thread.runs < open.runs) open = thread;
        if (!thread.isHeld && (free === undefined || thread.runs < free.runs)) free = thread;
      }
    }
    if (free !== undefined && free.runs < CONTEXTS_PER_THREAD_GOOD) return free;
    // One thread always stays for somebody else.
    if (own >= Math.max(1, this.#threads.length - 1)) return free ?? open;
    return warm ?? coldest ?? free;
  }

  /** One where nothing computes now. */
  #sharedThread(): Thread | undefined {
    return this.#threads
      .filter((thread) => hasRoom(thread) && !thread.isHeld)
      .sort((left, right) => left.runs - left.parked - (right.runs - right.parked))[0];
  }

  #assign(thread: Thread, placed: PlacedRun): void {
    const { tenant_id, script_key } = placed.run.message;
    const tenant = thread.tenants.find((known) => known.tenant_id === tenant_id);
    if (tenant === undefined) thread.tenants.push({ tenant_id, runs: 1 });
    else tenant.runs += 1;
    thread.runs += 1;
    placed.thread = thread;
    this.#send(thread, placed, !remember(thread, script_key));
  }

  #send({ stream }: Thread, placed: PlacedRun, withSource: boolean): void {
    const { message, source, request } = placed.run;
    placed.withSource = withSource;
    if (!withSource) stream.send(message, request);
    else stream.send({ ...message, source_length: source.length }, source + request);
  }
}

function hasRoom(thread: Thread): boolean {
  return thread.runs - thread.parked < RUNS_PER_THREAD_MAX;
}

/** Whether the thread has been sent this script. */
function remember(thread: Thread, script_key: string): boolean {
  if (thread.last_key === script_key) return true;
  const isKnown = thread.script_keys.delete(script_key);
  thread.script_keys.add(script_key);
  thread.last_key = script_key;
  const [oldest] = thread.script_keys;
  if (oldest !== undefined && thread.script_keys.size > KNOWN_SCRIPTS_MAX) {
    thread.script_keys.delete(oldest);
  }
  return isKnown;
}

function openCall(thread: Thread, placed: PlacedRun, call: number): void {
  placed.calls ??= new Set();
  if (placed.calls.size === 0) thread.parked += 1;
  placed.calls.add(call);
}

function closeCall(thread: Thread, { calls }: PlacedRun, call: number): void {
  if (calls?.delete(call) && calls.size === 0) thread.parked -= 1;
}

function leave(thread: Thread, { run, calls }: PlacedRun): void {
  thread.runs -= 1;
  if (calls !== undefined && calls.size > 0) thread.parked -= 1;
  const at = thread.tenants.findIndex(({ tenant_id }) => tenant_id === run.message.tenant_id);
  const tenant = thread.tenants[at];
  if (tenant === undefined) return;
  tenant.runs -= 1;
  if (tenant.runs === 0) thread.tenants.splice(at, 1);
}
