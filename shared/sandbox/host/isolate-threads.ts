/**
 * The threads of a host, and which run goes to which. A thread serves one tenant at a time: code that
 * holds its thread delays nobody else's. Runs that find no thread wait here in order.
 */
import { join } from 'node:path';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { monotonicNow } from '../protocol.ts';
import type { ThreadResult, ThreadRun, ThreadTask } from './isolate-thread.ts';

/** Runs of one tenant that share a thread; most of them wait for something. */
const RUNS_PER_THREAD_MAX = 8;

interface Thread {
  readonly port: MessagePort;
  readonly progress: Int32Array;
  tenant_id: string | undefined;
  in_flight: number;
  /** Scripts it has seen: their isolates are likely warm. */
  readonly script_keys: Set<string>;
  outbox: ThreadRun[];
  seen_changes: number;
  ready: boolean;
}

/** More would only be a list that is longer than a thread's isolates. */
const REMEMBERED_SCRIPTS_MAX = 24;

export class IsolateThreads {
  readonly #threads: Thread[] = [];
  #waiting: ThreadRun[] = [];
  readonly #inFlight = new Map<number, Thread>();
  readonly #onResult: (result: ThreadResult) => void;
  readonly #onReady: () => void;

  /** Starts `count` threads. `onLost`: one ended, which only its failure can cause. */
  constructor(
    count: number,
    onResult: (result: ThreadResult) => void,
    onReady: () => void,
    onLost: () => void,
  ) {
    this.#onResult = onResult;
    this.#onReady = onReady;
    const pool = new Piscina({
      filename: join(import.meta.dirname, 'isolate-thread.ts'),
      minThreads: count,
      maxThreads: count,
      // Each thread gets one task for its life and is fed through a port: a task per run costs more.
      concurrentTasksPerWorker: 1,
      atomics: 'disabled',
      env: {},
    });
    for (let index = 0; index < count; index += 1) this.#startThread(pool, onLost);
  }

  get count(): number {
    return this.#threads.length;
  }

  dispatch(run: ThreadRun): void {
    const thread = this.#threadFor(run);
    if (thread === undefined) this.#waiting.push(run);
    else this.#assign(thread, run);
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

  /** Answers the runs that waited here until their deadline; none of their code has run. */
  endOverdue(): void {
    const now = monotonicNow();
    const overdue = this.#waiting.filter(({ run }) => run.ends_at_ms <= now);
    if (overdue.length === 0) return;
    this.#waiting = this.#waiting.filter(({ run }) => run.ends_at_ms > now);
    for (const { run } of overdue) {
      const result = { kind: 'result', id: run.id, ending: 'timeout', console: [] } as const;
      this.#onResult({ result, body: '' });
    }
  }

  #startThread(pool: Piscina, onLost: () => void): void {
    const { port1, port2 } = new MessageChannel();
    const progress = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
    const thread: Thread = {
      ...{ port: port1, progress, tenant_id: undefined, in_flight: 0, ready: false },
      ...{ script_keys: new Set(), outbox: [], seen_changes: 0 },
    };
    this.#threads.push(thread);
    port1.on('message', (results: readonly ThreadResult[]) => this.#take(thread, results));
    const task: ThreadTask = { port: port2, progress };
    pool.run(task, { transferList: [port2] }).then(onLost, onLost);
  }

  #threadFor({ run }: ThreadRun): Thread | undefined {
    const own = this.#threads.filter((thread) => thread.tenant_id === run.tenant_id);
    const free = own.find(
      (thread) => thread.in_flight < RUNS_PER_THREAD_MAX && !this.#isHeld(thread),
    );
    if (free !== undefined) return free;
    const idle = this.#threads.filter((thread) => thread.tenant_id === undefined);
    // One thread always stays for somebody else.
    if (own.length >= Math.max(1, this.count - 1)) {
      return own.find((thread) => thread.in_flight < RUNS_PER_THREAD_MAX);
    }
    const warm = idle.find((thread) => thread.script_keys.has(run.script_key));
    return warm ?? idle.sort((left, right) => left.script_keys.size - right.script_keys.size)[0];
  }

  /** Whether customer code was seen holding the thread. */
  #isHeld(thread: Thread): boolean {
    const [id = 0, changes = 0] = thread.progress;
    return id !== 0 && changes === thread.seen_changes;
  }

  #assign(thread: Thread, run: ThreadRun): void {
    thread.tenant_id = run.run.tenant_id;
    thread.in_flight += 1;
    thread.script_keys.delete(run.run.script_key);
    thread.script_keys.add(run.run.script_key);
    for (const oldest of thread.script_keys) {
      if (thread.script_keys.size <= REMEMBERED_SCRIPTS_MAX) break;
      thread.script_keys.delete(oldest);
    }
    this.#inFlight.set(run.run.id, thread);
    if (thread.outbox.length === 0) setImmediate(() => this.#post(thread));
    thread.outbox.push(run);
  }

  #post(thread: Thread): void {
    const runs = thread.outbox;
    thread.outbox = [];
    thread.port.postMessage(runs);
  }

  #take(thread: Thread, results: readonly ThreadResult[]): void {
    if (!thread.ready) {
      thread.ready = true;
      if (this.#threads.every(({ ready }) => ready)) this.#onReady();
    }
    for (const result of results) {
      this.#inFlight.delete(result.result.id);
      thread.in_flight -= 1;
      this.#onResult(result);
    }
    if (thread.in_flight === 0) thread.tenant_id = undefined;
    this.#dispatchWaiting();
  }

  /** In order, but a tenant without a thread does not hold up those behind it. */
  #dispatchWaiting(): void {
    const waiting = this.#waiting.splice(0);
    for (const run of waiting) this.dispatch(run);
  }
}
