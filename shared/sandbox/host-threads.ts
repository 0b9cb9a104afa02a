/**
 * Which run goes to which thread of a host. A thread serves one tenant at a time, so that code that holds
 * its thread delays nobody else's; only who would wait for long shares one. Runs that find no thread wait
 * here in order. A run that waits for an answer from outside takes no room.
 */
import type { FrameStream } from './frames.ts';
import {
  closeCall,
  createThread,
  enter,
  type HostRun,
  hasRoom,
  leave,
  openCall,
  type PlacedRun,
  servesTenant,
  type Thread,
} from './host-thread.ts';
import { monotonicNow, type RunMessage, type ThreadMessage } from './protocol.ts';
import { RunTable } from './run-table.ts';

/** With more, waiting ones included, another thread is better if there is one: each has a context. */
const CONTEXTS_PER_THREAD_GOOD = 32;
/** Who has waited longer for a thread gets a place beside another tenant's runs. */
const SHARE_AFTER_MS = 100;

export class HostThreads {
  readonly #threads: readonly Thread[];
  readonly #runs = new RunTable<PlacedRun>();
  /** Runs that nobody waits for any more and that are still in their thread: what counts, no texts. */
  readonly #abandoned = new Map<number, PlacedRun>();
  readonly #readHolders: () => Int32Array;
  #waiting: PlacedRun[] = [];
  #isOpen = false;
  #isPlanned = false;

  /**
   * `streams`: one per thread, where its runs are sent. `readHolders`: for each thread the id of the run
   * that holds it now, or 0.
   */
  constructor(streams: readonly FrameStream<RunMessage>[], readHolders: () => Int32Array) {
    this.#readHolders = readHolders;
    this.#threads = streams.map(createThread);
  }

  /** Whether no run is in the host, waits for one of its threads, or is still in one. */
  get isIdle(): boolean {
    return this.#runs.size === 0 && this.#abandoned.size === 0;
  }

  /** Whether it is in a thread though nobody waits for it any more. */
  isAbandoned(id: number): boolean {
    return this.#abandoned.has(id);
  }

  /** Whether it is in the host, or waits for one of its threads. */
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
      ...{ run, since_ms: 0, thread: undefined, sent: undefined, last_call: 0, calls: undefined },
    };
    this.#runs.set(run.message.id, placed);
    const thread = this.#isOpen ? this.#threadFor(run.message) : undefined;
    if (thread !== undefined) this.#assign(thread, placed);
    else {
      placed.since_ms = monotonicNow();
      this.#waiting.push(placed);
    }
  }

  /** Those that have waited for a thread until their time was over. `now_ms`: as `monotonicNow`. */
  expired(now_ms: number): RunMessage[] {
    const late = this.#waiting.filter(({ run }) => run.message.ends_at_ms <= now_ms);
    return late.map(({ run }) => run.message);
  }

  /** Nobody waits for a run any more. What a thread has got of it stays there until it says so. */
  abandon(id: number): void {
    const placed = this.#runs.get(id);
    if (placed === undefined) return;
    this.#runs.delete(id);
    const { thread, sent } = placed;
    if (thread === undefined) this.#waiting = this.#waiting.filter((run) => run !== placed);
    else if (sent !== undefined && thread.stream.cancel(sent)) {
      leave(thread, placed);
      if (this.#waiting.length > 0) this.#placeSoon(thread);
    } else {
      const run = { message: placed.run.message, source: '', request: '' };
      this.#abandoned.set(id, { ...placed, run });
    }
  }

  clear(): void {
    this.#runs.clear();
    this.#abandoned.clear();
    this.#waiting = [];
  }

  /**
   * Notes what a thread says. Returns whether it is of a run that is there, and is news for its owner.
   * Throws when no thread of ours would say that.
   */
  take(index: number, message: ThreadMessage): boolean {
    const { kind, id } = message;
    const placed = this.#runs.get(id);
    const thread = (placed ?? this.#abandoned.get(id))?.thread;
    if (thread?.index !== index) return false;
    thread.isHeld = false;
    if (placed === undefined) this.#takeOfAbandoned(thread, message);
    else if (kind === 'unknown_script') this.#sendSource(thread, placed);
    else if (kind === 'result') {
      this.#runs.delete(id);
      leave(thread, placed);
    } else if (kind === 'cancel') closeCall(thread, placed, message.call);
    else if (message.call <= placed.last_call) return false;
    else openCall(thread, placed, message.call);
    if (this.#waiting.length > 0) this.#placeSoon(thread);
    return placed !== undefined && kind !== 'unknown_script';
  }

  #takeOfAbandoned(thread: Thread, { kind, id }: ThreadMessage): void {
    const placed = this.#abandoned.get(id);
    if (placed === undefined || (kind !== 'result' && kind !== 'unknown_script')) return;
    this.#abandoned.delete(id);
    leave(thread, placed);
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
      const thread = (this.#runs.get(id) ?? this.#abandoned.get(id))?.thread;
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
    let mayShare = true;
    this.#waiting = this.#waiting.filter((placed) => {
      const { message } = placed.run;
      let thread = without.has(message.tenant_id) ? undefined : this.#threadFor(message);
      if (thread === undefined) {
        without.add(message.tenant_id);
        const isLong = now_ms - placed.since_ms > SHARE_AFTER_MS;
        if (isLong && mayShare) {
          thread = this.#sharedThread();
          mayShare = thread !== undefined;
        }
      }
      if (thread !== undefined) this.#assign(thread, placed);
      return thread === undefined;
    });
  }

  /** At once when the thread is idle, before the next run of whom it served takes it; else with others. */
  #placeSoon(thread: Thread): void {
    if (thread.runs === 0) this.placeWaiting();
    else if (!this.#isPlanned) {
      this.#isPlanned = true;
      setImmediate(() => {
        this.#isPlanned = false;
        this.placeWaiting();
      });
    }
  }

  #threadFor({ tenant_id, script_key }: RunMessage): Thread | undefined {
    let [own, warm, coldest, open, free]: [number, ...(Thread | undefined)[]] = [0];
    for (const thread of this.#threads) {
      if (thread.runs === 0) {
        if (thread.script_keys.has(script_key)) warm ??= thread;
        const size = coldest?.script_keys.size ?? Number.POSITIVE_INFINITY;
        if (thread.script_keys.size < size) coldest = thread;
      } else if (servesTenant(thread, tenant_id)) {
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

  /** One where nothing computes now: of that, reports come too late. */
  #sharedThread(): Thread | undefined {
    const holders = this.#readHolders();
    return this.#threads
      .filter((thread) => hasRoom(thread) && !thread.isHeld && holders[thread.index] === 0)
      .sort((left, right) => left.runs - left.parked - (right.runs - right.parked))[0];
  }

  #assign(thread: Thread, placed: PlacedRun): void {
    const { message, request } = placed.run;
    placed.thread = thread;
    if (enter(thread, message)) {
      placed.sent = message;
      thread.stream.send(message, request);
    } else this.#sendSource(thread, placed);
  }

  #sendSource({ stream }: Thread, placed: PlacedRun): void {
    if (placed.sent?.source_length !== undefined) {
      throw new TypeError('a script that was sent is not known');
    }
    const { message, source, request } = placed.run;
    placed.sent = { ...message, source_length: source.length };
    stream.send(placed.sent, source + request);
  }
}
