/**
 * One thread of a host: keeps isolates by script, least recently used first out, and runs what comes
 * through its port, answers gathered per turn. It reads nothing but our own code, before any script.
 */
import type { MessagePort } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import type { ResultMessage, RunMessage } from '../protocol.ts';
import { Invocation } from './invocation.ts';
import { ScriptIsolate } from './isolate.ts';
import { preludeSource } from './prelude.ts';

/** Isolates kept warm by a thread, 2-4 MiB each when idle. */
const ISOLATES_MAX = 24;
/** What idle isolates of a thread may hold together: garbage of one must not be a neighbour's end. */
const IDLE_BYTES_MAX = 96 * 1024 * 1024;
/** One that holds more after a run is not worth keeping. */
const IDLE_ISOLATE_BYTES_MAX = 32 * 1024 * 1024;

/** Host → thread. `body` as in the frame. */
export interface ThreadRun {
  readonly run: RunMessage;
  readonly body: string;
}

/** Thread → host. */
export interface ThreadResult {
  readonly result: ResultMessage;
  readonly body: string;
}

export interface ThreadTask {
  readonly port: MessagePort;
  /** Shared with the host: `[id of the run that holds the thread or 0, count of its changes]`. */
  readonly progress: Int32Array;
}

class IsolateThread {
  readonly #task: ThreadTask;
  readonly #prelude = preludeSource();
  /** Runs that use an isolate; one that is in use is disposed only when the last of them has ended. */
  readonly #users = new Map<ScriptIsolate, number>();
  readonly #isolates = new LRUCache<string, ScriptIsolate>({
    max: ISOLATES_MAX,
    maxSize: IDLE_BYTES_MAX,
    maxEntrySize: IDLE_ISOLATE_BYTES_MAX,
    dispose: (isolate) => {
      if (!this.#users.has(isolate)) isolate.dispose();
    },
  });
  #results: ThreadResult[] = [];

  constructor(task: ThreadTask) {
    this.#task = task;
  }

  start({ run, body }: ThreadRun): void {
    const isolate = this.#isolateOf(run, body);
    if (isolate === undefined) {
      const result = { kind: 'result', id: run.id, ending: 'unknown_script', console: [] } as const;
      this.#answer({ result, body: '' });
      return;
    }
    this.#users.set(isolate, (this.#users.get(isolate) ?? 0) + 1);
    const report = (id: number): void => this.#report(id);
    const invocation = new Invocation(isolate, run, report, ({ ending, text, console }) => {
      this.#answer({ result: { kind: 'result', id: run.id, ending, console }, body: text });
      this.#leave(run.script_key, isolate);
    });
    invocation.start(body.slice(run.source_length));
  }

  #isolateOf(run: RunMessage, body: string): ScriptIsolate | undefined {
    const known = this.#isolates.get(run.script_key);
    if (known !== undefined && !known.isDisposed) return known;
    if (run.source_length === 0) return undefined;
    const isolate = new ScriptIsolate(this.#prelude, body.slice(0, run.source_length));
    this.#isolates.set(run.script_key, isolate, { size: 1 });
    return isolate;
  }

  #leave(key: string, isolate: ScriptIsolate): void {
    const users = (this.#users.get(isolate) ?? 1) - 1;
    if (users > 0) return void this.#users.set(isolate, users);
    this.#users.delete(isolate);
    if (isolate.isDisposed) {
      if (this.#isolates.peek(key) === isolate) this.#isolates.delete(key);
    } else if (this.#isolates.peek(key) !== isolate) isolate.dispose();
    else setImmediate(() => this.#keepWarm(key, isolate));
  }

  /** Off the path of the run: the next context, and what keeping this isolate costs by now. */
  #keepWarm(key: string, isolate: ScriptIsolate): void {
    if (this.#users.has(isolate) || this.#isolates.peek(key) !== isolate) return;
    isolate.prepareSpare();
    if (isolate.isDisposed) this.#isolates.delete(key);
    else this.#isolates.set(key, isolate, { size: isolate.bytes });
  }

  #report(id: number): void {
    this.#task.progress[0] = id;
    Atomics.add(this.#task.progress, 1, 1);
  }

  #answer(result: ThreadResult): void {
    if (this.#results.length === 0) setImmediate(() => this.#flush());
    this.#results.push(result);
  }

  #flush(): void {
    const results = this.#results;
    this.#results = [];
    this.#task.port.postMessage(results);
  }
}

/** The one task of a pool's thread: settles when the host closes the port. */
export default function serveIsolates(task: ThreadTask): Promise<void> {
  const thread = new IsolateThread(task);
  const { port } = task;
  port.on('message', (runs: readonly ThreadRun[]) => {
    for (const run of runs) thread.start(run);
  });
  // The host counts a thread as ready at its first, empty answer.
  port.postMessage([]);
  return new Promise((resolve) => port.once('close', resolve));
}
