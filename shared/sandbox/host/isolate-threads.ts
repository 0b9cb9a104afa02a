/** The threads of a host: starts them, brings them answers, and sees which run holds which of them. */
import { join } from 'node:path';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { THREAD_FILE } from '../code-files.ts';
import { PROGRESS_CHANGES, type RoutedAnswer, THREADS_DESCRIPTOR } from '../protocol.ts';
import type { ThreadAnswer, ThreadTask } from './isolate-thread.ts';
import type { SharedBundles } from './module-bundles.ts';

interface Thread {
  readonly port: MessagePort;
  readonly progress: Int32Array;
  outbox: ThreadAnswer[];
  seen_changes: number;
  /** Whether its next change is waited for. */
  isAwaited: boolean;
}

export interface Look {
  /** Runs that have held their thread since the look before. */
  readonly busy: number[];
  /** No run holds a thread, nor has one since the look before. */
  readonly isQuiet: boolean;
}

export class IsolateThreads {
  readonly #threads: Thread[] = [];

  /** Starts `count` threads. `onReady`: all can work. `onLost`: one ended, which only its failure can cause. */
  constructor(count: number, bundles: SharedBundles, onReady: () => void, onLost: () => void) {
    const pool = new Piscina({
      filename: join(import.meta.dirname, THREAD_FILE),
      minThreads: count,
      maxThreads: count,
      // Each thread gets one task for its life and is fed through a pipe: a task per run costs more.
      concurrentTasksPerWorker: 1,
      atomics: 'disabled',
      env: {},
    });
    const starts = Array.from({ length: count }, (_thread, index) => {
      const { port1, port2 } = new MessageChannel();
      const progress = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
      const fresh = { outbox: [], seen_changes: 0, isAwaited: false };
      this.#threads.push({ port: port1, progress, ...fresh });
      const descriptor = THREADS_DESCRIPTOR + index;
      const task: ThreadTask = { port: port2, descriptor, progress, index, bundles };
      pool.run(task, { transferList: [port2] }).then(onLost, onLost);
      return new Promise((resolve) => port1.once('message', resolve));
    });
    Promise.all(starts).then(onReady).catch(onLost);
  }

  /** Brings an answer to the thread of its run. */
  answer({ thread: index, ...answer }: RoutedAnswer, body: string): void {
    const thread = this.#threads[index];
    if (thread === undefined) return;
    if (thread.outbox.length === 0) {
      setImmediate(() => {
        const answers = thread.outbox;
        thread.outbox = [];
        thread.port.postMessage(answers);
      });
    }
    thread.outbox.push({ answer, body });
  }

  /** Looks at all threads. */
  look(): Look {
    const busy: number[] = [];
    let isQuiet = true;
    for (const thread of this.#threads) {
      const [id = 0, changes = 0] = thread.progress;
      if (id !== 0 || changes !== thread.seen_changes) isQuiet = false;
      if (id !== 0 && changes === thread.seen_changes) busy.push(id);
      thread.seen_changes = changes;
    }
    return { busy, isQuiet };
  }

  /** Calls `then` when something has changed since the last look; may call it more than once. */
  awaitChange(then: () => void): void {
    for (const thread of this.#threads) {
      if (thread.isAwaited) continue;
      const waiting = Atomics.waitAsync(thread.progress, PROGRESS_CHANGES, thread.seen_changes);
      if (!waiting.async) {
        then();
        continue;
      }
      thread.isAwaited = true;
      void waiting.value.then(() => {
        thread.isAwaited = false;
        then();
      });
    }
  }
}
