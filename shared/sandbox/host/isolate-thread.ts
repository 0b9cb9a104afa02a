/**
 * One thread of a host: keeps isolates by script, least recently used first out, and runs what comes
 * through its port, reports gathered per turn. It reads nothing but our own code, before any script.
 */
import type { MessagePort } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import type {
  AnswerMessage,
  CallMessage,
  CancelMessage,
  ResultMessage,
  RunMessage,
} from '../protocol.ts';
import { Invocation } from './invocation.ts';
import { ScriptIsolate } from './isolate.ts';
import type { SharedBundles } from './module-bundles.ts';

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
export interface ThreadAnswer {
  readonly answer: AnswerMessage;
  readonly body: string;
}

/** Thread → host. */
export interface ThreadReport {
  readonly message: ResultMessage | CallMessage | CancelMessage;
  readonly body: string;
}

export interface ThreadTask {
  readonly port: MessagePort;
  /** Shared with the host: `[id of the run that holds the thread or 0, count of its changes]`. */
  readonly progress: Int32Array;
  readonly bundles: SharedBundles;
}

class IsolateThread {
  readonly #task: ThreadTask;
  /** Runs that use an isolate; one that is in use is disposed only when the last of them has ended. */
  readonly #users = new Map<ScriptIsolate, number>();
  /** In a new object at each measuring: the cache does not count a value anew that it knows. */
  readonly #isolates = new LRUCache<string, { readonly isolate: ScriptIsolate }>({
    max: ISOLATES_MAX,
    maxSize: IDLE_BYTES_MAX,
    dispose: ({ isolate }, _key, reason) => {
      if (reason !== 'set' && !this.#users.has(isolate)) isolate.dispose();
    },
  });
  readonly #running = new Map<number, Invocation>();
  /** Isolates without a run that are looked after at the end of this turn. */
  readonly #resting = new Set<ScriptIsolate>();
  #reports: ThreadReport[] = [];

  constructor(task: ThreadTask) {
    this.#task = task;
  }

  start({ run, body }: ThreadRun): void {
    const { id, script_key } = run;
    const isolate = this.#isolateOf(run, body);
    if (isolate === undefined) {
      this.#tell({ kind: 'result', id, ending: 'unknown_script', console: [] }, '');
      return;
    }
    this.#users.set(isolate, (this.#users.get(isolate) ?? 0) + 1);
    const invocation = new Invocation(isolate, run, {
      onSegment: (holder) => this.#showHolder(holder),
      onCall: (call, service, request) => this.#tell({ kind: 'call', id, call, service }, request),
      onCancel: (call) => this.#tell({ kind: 'cancel', id, call }, ''),
      onEnd: ({ ending, text, console }) => {
        this.#running.delete(id);
        this.#tell({ kind: 'result', id, ending, console }, text);
        this.#leave(script_key, isolate);
      },
    });
    this.#running.set(id, invocation);
    invocation.start(body.slice(run.source_length));
  }

  /** To a run that has ended meanwhile, an answer is nothing. */
  answer({ answer, body }: ThreadAnswer): void {
    this.#running.get(answer.id)?.answer(answer, body);
  }

  #isolateOf(run: RunMessage, body: string): ScriptIsolate | undefined {
    const known = this.#isolates.get(run.script_key)?.isolate;
    if (known !== undefined && !known.isDisposed) return known;
    if (run.source_length === 0) return undefined;
    const source = body.slice(0, run.source_length);
    // Compiling runs nothing of the script but can be made long, and no time limit of V8 ends it.
    this.#showHolder(run.id);
    const isolate = new ScriptIsolate(this.#task.bundles, source);
    this.#showHolder(0);
    this.#isolates.set(run.script_key, { isolate }, { size: 1 });
    return isolate;
  }

  #leave(key: string, isolate: ScriptIsolate): void {
    const users = (this.#users.get(isolate) ?? 1) - 1;
    if (users > 0) return void this.#users.set(isolate, users);
    this.#users.delete(isolate);
    if (isolate.isDisposed) {
      if (this.#isolates.peek(key)?.isolate === isolate) this.#isolates.delete(key);
    } else if (this.#isolates.peek(key)?.isolate !== isolate) isolate.dispose();
    else this.#keepWarmLater(key, isolate);
  }

  /** Once for all runs that end in this turn: measuring an isolate costs 2 µs, a fifth of a short one. */
  #keepWarmLater(key: string, isolate: ScriptIsolate): void {
    if (this.#resting.has(isolate)) return;
    this.#resting.add(isolate);
    setImmediate(() => {
      this.#resting.delete(isolate);
      this.#keepWarm(key, isolate);
    });
  }

  /** Off the path of the run: the next context, and what keeping this isolate costs by now. */
  #keepWarm(key: string, isolate: ScriptIsolate): void {
    if (this.#isolates.peek(key)?.isolate !== isolate) return;
    if (!this.#users.has(isolate)) isolate.prepareSpare();
    // One that is in use again is counted too, or a thread that never rests would keep them all.
    const size = isolate.isDisposed ? Number.POSITIVE_INFINITY : isolate.bytes;
    if (size > IDLE_ISOLATE_BYTES_MAX) this.#isolates.delete(key);
    else this.#isolates.set(key, { isolate }, { size });
  }

  #showHolder(id: number): void {
    this.#task.progress[0] = id;
    Atomics.add(this.#task.progress, 1, 1);
  }

  #tell(message: ThreadReport['message'], body: string): void {
    if (this.#reports.length === 0) setImmediate(() => this.#flush());
    this.#reports.push({ message, body });
  }

  #flush(): void {
    const reports = this.#reports;
    this.#reports = [];
    this.#task.port.postMessage(reports);
  }
}

/** The one task of a pool's thread: settles when the host closes the port. */
export default function serveIsolates(task: ThreadTask): Promise<void> {
  const thread = new IsolateThread(task);
  const { port } = task;
  port.on('message', (items: readonly (ThreadRun | ThreadAnswer)[]) => {
    for (const item of items) {
      if ('run' in item) thread.start(item);
      else thread.answer(item);
    }
  });
  // The host counts a thread as ready at its first, empty answer.
  port.postMessage([]);
  return new Promise((resolve) => port.once('close', resolve));
}
