/**
 * The threads of a host, and which run goes to which. A thread serves one tenant at a time, so that code
 * that holds its thread delays nobody else's; only who would wait for long shares one. Runs that find
 * no thread wait here in order. A run that waits for an answer from outside takes no room.
 */
import { join } from 'node:path';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { THREAD_FILE } from '../code-files.ts';
import { type AnswerMessage, monotonicNow } from '../protocol.ts';
import type { ThreadAnswer, ThreadReport, ThreadRun, ThreadTask } from './isolate-thread.ts';
import type { SharedBundles } from './module-bundles.ts';

/**
 * Runs of one tenant that share a thread, without those that wait for an answer. Many at a time make
 * messages few: with 8, a run in a kept context cost a fifth more.
 */
const RUNS_PER_THREAD_MAX = 32;
/** With more, waiting ones included, another thread is better if there is one: each has a context. */
const CONTEXTS_PER_THREAD_GOOD = 32;
/** Who has waited longer for a thread gets a place beside another tenant's runs. */
const SHARE_AFTER_MS = 100;
/** More would only be a list that is longer than a thread's isolates. */
const REMEMBERED_SCRIPTS_MAX = 24;

interface Thread {
  readonly port: MessagePort;
  readonly progress: Int32Array;
  /** Runs that have not ended, by tenant. */
  readonly tenants: Map<string, number>;
  runs: number;
  /** Of them, those that wait for an answer from outside. */
  parked: number;
  /** Scripts it has seen: their isolates are likely warm. */
  readonly script_keys: Set<string>;
  outbox: (ThreadRun | ThreadAnswer)[];
  seen_changes: number;
  ready: boolean;
}

interface PlacedRun {
  readonly thread: Thread;
  readonly tenant_id: string;
  /** Calls that have not been answered. */
  readonly calls: Set<number>;
}

interface WaitingRun {
  readonly item: ThreadRun;
  readonly since_ms: number;
}

export class IsolateThreads {
  readonly #threads: Thread[] = [];
  #waiting: WaitingRun[] = [];
  readonly #placed = new Map<number, PlacedRun>();
  readonly #onReport: (report: ThreadReport) => void;
  readonly #onReady: () => void;

  /** Starts `count` threads. `onLost`: one ended, which only its failure can cause. */
  constructor(
    count: number,
    bundles: SharedBundles,
    onReport: (report: ThreadReport) => void,
    onReady: () => void,
    onLost: () => void,
  ) {
    this.#onReport = onReport;
    this.#onReady = onReady;
    const pool = new Piscina({
      filename: join(import.meta.dirname, THREAD_FILE),
      minThreads: count,
      maxThreads: count,
      // Each thread gets one task for its life and is fed through a port: a task per run costs more.
      concurrentTasksPerWorker: 1,
      atomics: 'disabled',
      env: {},
    });
    for (let index = 0; index < count; index += 1) this.#startThread(pool, bundles, onLost);
  }

  get count(): number {
    return this.#threads.length;
  }

  dispatch(item: ThreadRun, since_ms = monotonicNow()): void {
    const thread = this.#threadFor(item);
    if (thread === undefined) this.#waiting.push({ item, since_ms });
    else this.#assign(thread, item);
  }

  /** Brings an answer to its run; nothing happens when that has ended. */
  answer(answer: AnswerMessage, body: string): void {
    const run = this.#placed.get(answer.id);
    if (run === undefined) return;
    this.#closeCall(run, answer.call);
    this.#post(run.thread, { answer, body });
  }

  /** Runs that have held their thread since the last call of this. */
  busyRuns(): number[] {
    const busy: number[] = [];
    for (const thread of this.#threads) {
      const [id = 0, changes = 0] = thread.progress;
      if (id !== 0 && changes === thread.seen_changes) busy.push(id);
      thread.seen_changes = changes;
    }
    return busy;
  }

  /** Looks after the runs that wait here: ends those whose time is over, places who waits for long. */
  serveWaiting(): void {
    if (this.#waiting.length === 0) return;
    const now = monotonicNow();
    const waiting = this.#waiting.splice(0);
    for (const entry of waiting) {
      const { run } = entry.item;
      if (run.ends_at_ms <= now) {
        const message = { kind: 'result', id: run.id, ending: 'timeout', console: [] } as const;
        this.#onReport({ message, body: '' });
      } else {
        const isLong = now - entry.since_ms > SHARE_AFTER_MS;
        const thread = this.#threadFor(entry.item) ?? (isLong ? this.#sharedThread() : undefined);
        if (thread === undefined) this.#waiting.push(entry);
        else this.#assign(thread, entry.item);
      }
    }
  }

  #startThread(pool: Piscina, bundles: SharedBundles, onLost: () => void): void {
    const { port1, port2 } = new MessageChannel();
    const progress = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
    const thread: Thread = {
      ...{ port: port1, progress, tenants: new Map(), runs: 0, parked: 0, ready: false },
      ...{ script_keys: new Set(), outbox: [], seen_changes: 0 },
    };
    this.#threads.push(thread);
    port1.on('message', (reports: readonly ThreadReport[]) => this.#take(thread, reports));
    const index = this.#threads.length - 1;
    const task: ThreadTask = { port: port2, progress, index, bundles };
    pool.run(task, { transferList: [port2] }).then(onLost, onLost);
  }

  #threadFor({ run }: ThreadRun): Thread | undefined {
    const own = this.#threads.filter((thread) => thread.tenants.has(run.tenant_id));
    const open = own.filter(hasRoom).sort((left, right) => left.runs - right.runs);
    const free = open.find((thread) => !this.#isHeld(thread));
    if (free !== undefined && free.runs < CONTEXTS_PER_THREAD_GOOD) return free;
    // One thread always stays for somebody else.
    if (own.length >= Math.max(1, this.count - 1)) return free ?? open[0];
    const idle = this.#threads.filter((thread) => thread.runs === 0);
    const warm = idle.find((thread) => thread.script_keys.has(run.script_key));
    const coldest = idle.sort((left, right) => left.script_keys.size - right.script_keys.size)[0];
    return warm ?? coldest ?? free;
  }

  /** One where nothing computes now. */
  #sharedThread(): Thread | undefined {
    return this.#threads
      .filter((thread) => hasRoom(thread) && !this.#isHeld(thread))
      .sort((left, right) => left.runs - left.parked - (right.runs - right.parked))[0];
  }

  /** Whether customer code was seen holding the thread. */
  #isHeld(thread: Thread): boolean {
    const [id = 0, changes = 0] = thread.progress;
    return id !== 0 && changes === thread.seen_changes;
  }

  #assign(thread: Thread, item: ThreadRun): void {
    const { id, tenant_id, script_key } = item.run;
    thread.tenants.set(tenant_id, (thread.tenants.get(tenant_id) ?? 0) + 1);
    thread.runs += 1;
    thread.script_keys.delete(script_key);
    thread.script_keys.add(script_key);
    for (const oldest of thread.script_keys) {
      if (thread.script_keys.size <= REMEMBERED_SCRIPTS_MAX) break;
      thread.script_keys.delete(oldest);
    }
    this.#placed.set(id, { thread, tenant_id, calls: new Set() });
    this.#post(thread, item);
  }

  #post(thread: Thread, item: ThreadRun | ThreadAnswer): void {
    if (thread.outbox.length === 0) {
      setImmediate(() => {
        const items = thread.outbox;
        thread.outbox = [];
        thread.port.postMessage(items);
      });
    }
    thread.outbox.push(item);
  }

  #take(thread: Thread, reports: readonly ThreadReport[]): void {
    if (!thread.ready) {
      thread.ready = true;
      if (this.#threads.every(({ ready }) => ready)) this.#onReady();
    }
    for (const report of reports) {
      const { message } = report;
      const run = this.#placed.get(message.id);
      if (run === undefined) continue;
      if (message.kind === 'result') this.#leave(message.id, run);
      else if (message.kind === 'call') this.#openCall(run, message.call);
      else this.#closeCall(run, message.call);
      this.#onReport(report);
    }
    if (this.#waiting.length > 0) this.#dispatchWaiting();
  }

  #openCall(run: PlacedRun, call: number): void {
    if (run.calls.size === 0) run.thread.parked += 1;
    run.calls.add(call);
  }

  #closeCall(run: PlacedRun, call: number): void {
    if (run.calls.delete(call) && run.calls.size === 0) run.thread.parked -= 1;
  }

  #leave(id: number, { thread, tenant_id, calls }: PlacedRun): void {
    this.#placed.delete(id);
    thread.runs -= 1;
    if (calls.size > 0) thread.parked -= 1;
    const left = (thread.tenants.get(tenant_id) ?? 1) - 1;
    if (left > 0) thread.tenants.set(tenant_id, left);
    else thread.tenants.delete(tenant_id);
  }

  /** In order, but a tenant without a thread does not hold up those behind it. */
  #dispatchWaiting(): void {
    const waiting = this.#waiting.splice(0);
    for (const { item, since_ms } of waiting) this.dispatch(item, since_ms);
  }
}

function hasRoom(thread: Thread): boolean {
  return thread.runs - thread.parked < RUNS_PER_THREAD_MAX;
}
