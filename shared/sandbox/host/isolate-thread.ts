/**
 * One thread of a host: keeps isolates by script, least recently used first out, and runs what comes
 * through its pipe. It reads nothing but our own code, before any script.
 */
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { MessagePort } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { type FrameStream, frameStream } from '../frames.ts';
import {
  type AnswerMessage,
  HOLDER_BYTES,
  HOLDERS_DESCRIPTOR,
  monotonicNow,
  PROGRESS_CHANGES,
  type RunMessage,
  type ThreadMessage,
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

/**
 * What isolates whose runs wait may hold together: one at its own bound and a half. Or a tenant with many scripts,
 * each within its bound, ends the host with everybody in it.
 */
const WAITING_BYTES_MAX = 192 * 1024 * 1024;

/** Host → thread. `body` as in the frame. */
export interface ThreadAnswer {
  readonly answer: AnswerMessage;
  readonly body: string;
}

export interface ThreadTask {
  /** Brings `ThreadAnswer[]`. Says `null` when the thread can work. */
  readonly port: MessagePort;
  /** The pipe on which runs come and go. */
  readonly descriptor: number;
  /** Shared with the host: `[id of the run that holds the thread or 0, count of its changes]`. */
  readonly progress: Int32Array;
  /** Its place among the host's threads, from 0. */
  readonly index: number;
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
  readonly #running = new Map<number, { invocation: Invocation; isolate: ScriptIsolate }>();
  /** Bytes of isolates with runs that wait, by tenant and as measured last. */
  readonly #waitingBytes = new Map<ScriptIsolate, { tenant_id: string; bytes: number }>();
  /** Isolates without a run that are looked after at the end of this turn. */
  readonly #resting = new Set<ScriptIsolate>();
  /** Isolates that are measured at the end of this turn. */
  readonly #measuring = new Set<ScriptIsolate>();
  readonly #stream: FrameStream<ThreadMessage>;

  /** Begins to read runs. `onBroken`: what came was none. */
  constructor(task: ThreadTask, pipe: Socket, onBroken: () => void) {
    this.#task = task;
    // The gateway is the one side that is trusted to send what the protocol says.
    const onFrame = (header: unknown, body: string): void =>
      this.#start(header as RunMessage, body);
    this.#stream = frameStream(pipe, onFrame, onBroken);
  }

  #start(run: RunMessage, body: string): void {
    const { id, script_key, source_length = 0 } = run;
    // Before it is compiled, which may take long: nobody waits for it any more.
    if (monotonicNow() >= run.ends_at_ms) {
      this.#stream.send({ kind: 'result', id, ending: 'timeout', console: [] });
      return;
    }
    const isolate = this.#isolateOf(run, body);
    if (isolate === undefined) {
      this.#stream.send({ kind: 'unknown_script', id });
      return;
    }
    this.#users.set(isolate, (this.#users.get(isolate) ?? 0) + 1);
    const invocation = new Invocation(isolate, run, {
      onSegment: (holder) => {
        this.#showHolder(holder);
        if (holder === 0) this.#measureLater(isolate, run.tenant_id);
      },
      onCall: (call, service, request) =>
        this.#stream.send({ kind: 'call', id, call, service }, request),
      onCancel: (call) => this.#stream.send({ kind: 'cancel', id, call }),
      onEnd: ({ ending, text, console }) => {
        this.#running.delete(id);
        this.#stream.send({ kind: 'result', id, ending, console }, text);
        this.#leave(script_key, isolate);
      },
    });
    this.#running.set(id, { invocation, isolate });
    invocation.start(body.slice(source_length));
  }

  /** To a run that has ended meanwhile, an answer is nothing. */
  answer({ answer, body }: ThreadAnswer): void {
    this.#running.get(answer.id)?.invocation.answer(answer, body);
  }

  #isolateOf(run: RunMessage, body: string): ScriptIsolate | undefined {
    const known = this.#isolates.get(run.script_key)?.isolate;
    if (known !== undefined && !known.isDisposed) return known;
    if (run.source_length === undefined) return undefined;
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
    this.#waitingBytes.delete(isolate);
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

  /** Once for all segments of this turn, and only if a run is left that waits. */
  #measureLater(isolate: ScriptIsolate, tenant_id: string): void {
    if (this.#measuring.has(isolate)) return;
    this.#measuring.add(isolate);
    setImmediate(() => {
      this.#measuring.delete(isolate);
      if (isolate.isDisposed || !this.#users.has(isolate)) return;
      this.#waitingBytes.set(isolate, { tenant_id, bytes: isolate.bytes });
      this.#endLargest();
    });
  }

  /** Ends runs of who holds most, until there is room; a lone isolate has its own bound. */
  #endLargest(): void {
    const bytesOf = (entries: Iterable<{ bytes: number }>): number =>
      Array.from(entries).reduce((sum, { bytes }) => sum + bytes, 0);
    while (
      this.#waitingBytes.size > 1 &&
      bytesOf(this.#waitingBytes.values()) > WAITING_BYTES_MAX
    ) {
      const tenants = Map.groupBy(this.#waitingBytes, ([, { tenant_id }]) => tenant_id).values();
      const sizes = (entries: [ScriptIsolate, { bytes: number }][]): number =>
        bytesOf(entries.map(([, size]) => size));
      const [most = []] = [...tenants].sort((left, right) => sizes(right) - sizes(left));
      const [largest] = most.sort(([, left], [, right]) => right.bytes - left.bytes);
      if (largest === undefined) return;
      const [isolate] = largest;
      this.#waitingBytes.delete(isolate);
      isolate.dispose();
      for (const run of [...this.#running.values()]) {
        if (run.isolate === isolate) run.invocation.endOutOfMemory();
      }
    }
  }

  #showHolder(id: number): void {
    const { progress, index } = this.#task;
    progress[0] = id;
    Atomics.add(progress, PROGRESS_CHANGES, 1);
    // Its host may rest: 25 ns when it does not.
    if (id !== 0) Atomics.notify(progress, PROGRESS_CHANGES);
    // For the gateway, when this process is no more: 1.4 µs.
    try {
      writeSync(HOLDERS_DESCRIPTOR, progress, 0, HOLDER_BYTES, index * HOLDER_BYTES);
    } catch {
      // A disk that copies what is overwritten may be full: scripts run all the same.
    }
  }
}

/** The one task of a pool's thread: settles when the gateway has closed the pipe. */
export default function serveIsolates(task: ThreadTask): Promise<void> {
  return new Promise((resolve) => {
    const pipe = new Socket({ fd: task.descriptor, readable: true, writable: true });
    for (const event of ['close', 'end', 'error']) pipe.once(event, () => resolve());
    const thread = new IsolateThread(task, pipe, resolve);
    task.port.on('message', (answers: readonly ThreadAnswer[]) => {
      for (const answer of answers) thread.answer(answer);
    });
    task.port.postMessage(null);
  });
}
