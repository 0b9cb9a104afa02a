/**
 * One sandbox host as the gateway sees it: starts it, sends runs, watches its memory and deadlines, and
 * kills it. It decides nothing about what the runs in it get; that is its owner's (supervisor.ts).
 */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { type FrameStream, frameStream } from './frames.ts';
import { hostCommand, type Isolation, networkOf } from './host-command.ts';
import type { HostRun } from './host-thread.ts';
import { HostThreads } from './host-threads.ts';
import {
  type AnswerMessage,
  type CallMessage,
  type CancelMessage,
  HOST_DESCRIPTOR,
  monotonicNow,
  type ResultMessage,
  type RoutedAnswer,
  type RunMessage,
  SILENCE_MS_MAX,
  START_MS_MAX,
  THREADS_DESCRIPTOR,
} from './protocol.ts';
import { readHostMessage, readThreadMessage } from './script-result.ts';
import { requireOurCode, spawnHost } from './spawn-host.ts';
import { ThreadHolders } from './thread-holders.ts';

/** How often memory and deadlines are looked at while a run is in the host (design section 8). */
const POLL_MS = 20;
/** Behind a gap like this the gateway has not heard what came meanwhile: it stood still, or was busy. */
const GAP_MS = 200;
/** After its deadline a run still has this long to be ended by V8 inside. */
const GRACE_MS = 250;
/** Of what a host prints before it is ready, for the error that says why it is not. */
const LAST_WORDS_MAX = 2_000;
const PAGE_BYTES = pageBytes();

export type LossReason = 'deadline' | 'memory' | 'silence' | 'ended' | 'closed';

export interface Suspects {
  /** Whether a run held a thread of it, one that nobody waits for any more included. */
  readonly held: boolean;
  /** Runs that had been sent to a thread, or were about to be. */
  readonly placed: ReadonlySet<number>;
  readonly ids: ReadonlySet<number>;
  /** They were seen at it. Otherwise they are whoever was there, or only on the way there. */
  readonly seen: boolean;
}

export interface HostOptions {
  readonly isolation: Isolation;
  readonly thread_count: number;
  /** The bundled npm modules, see modules/. */
  readonly modules_folder: string;
  readonly rss_bytes_max: number;
  readonly onResult: (result: ResultMessage, body: string) => void;
  /** A run that is in this host calls out, or takes that back. */
  readonly onCall: (message: CallMessage | CancelMessage, body: string) => void;
  /**
   * `suspects`: the runs that can have caused it; none when nobody in it can. `how`: the signal or exit code
   * of one that we did not kill.
   */
  readonly onLost: (reason: LossReason, suspects: Suspects, how: string | undefined) => void;
}

export class HostProcess {
  /** Settles when the host can run scripts; rejects with its last words when it ends before. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  readonly #options: HostOptions;
  readonly #child: ChildProcess;
  readonly #stream: FrameStream<RoutedAnswer>;
  readonly #threads: HostThreads;
  readonly #holders: ThreadHolders;
  #poll: NodeJS.Timeout | undefined;
  #watched_at_ms = 0;
  #isBehindGap = false;
  #busy: readonly number[] = [];
  #heard_at_ms = monotonicNow();
  #lost: LossReason | undefined;
  #overdue: number[] = [];
  #network: 'none' | 'shared' = 'shared';
  #isReady = false;
  #lastWords = '';

  constructor(options: HostOptions) {
    this.#options = options;
    requireOurCode(options.modules_folder);
    const { isolation, thread_count, modules_folder } = options;
    this.#holders = new ThreadHolders(thread_count);
    const command = hostCommand(isolation, thread_count, modules_folder);
    this.#child = spawnHost(command, thread_count, this.#holders);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.ready = promise;
    promise.catch(() => undefined);
    this.#stream = this.#streamOf(HOST_DESCRIPTOR, (header) => this.#take(header, resolve));
    const streams = Array.from({ length: thread_count }, (_thread, index) =>
      this.#streamOf<RunMessage>(THREADS_DESCRIPTOR + index, (header, body) =>
        this.#takeOfThread(index, header, body),
      ),
    );
    this.#threads = new HostThreads(streams, () => this.#holders.read());
    this.#child.stderr?.on('data', (text: Buffer) => {
      if (this.#lastWords.length < LAST_WORDS_MAX) this.#lastWords += text.toString('latin1');
    });
    this.exited = new Promise((settle) => {
      const end = (how?: string): void => {
        reject(new Error(`a sandbox host ended: ${this.#lastWords.slice(0, LAST_WORDS_MAX)}`));
        settle();
        this.#end(how);
      };
      this.#child.once('exit', (code, signal) => end(signal ?? `code ${code}`));
      this.#child.once('error', () => end());
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Whether it was seen in a network namespace of its own. Known once it is ready. */
  get network(): 'none' | 'shared' {
    return this.#network;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Sends a run to a thread, as soon as one can take it. */
  send(run: HostRun): void {
    if (this.#threads.isIdle) this.#heard_at_ms = monotonicNow();
    this.#threads.add(run);
    if (this.#poll !== undefined) return;
    this.#watched_at_ms = monotonicNow();
    this.#poll = setInterval(() => this.#watch(), POLL_MS).unref();
  }

  /** Sends the answer of a call, unless its run has ended. */
  answer(message: AnswerMessage, body: string): void {
    const thread = this.#threads.answered(message.id, message.call);
    if (thread !== undefined) this.#stream.send({ ...message, thread }, body);
  }

  /** Ends the host at once. `onLost` follows when it is gone. */
  kill(reason: LossReason): void {
    this.#lost ??= reason;
    this.#child.kill('SIGKILL');
  }

  #streamOf<Out>(
    descriptor: number,
    onFrame: (header: unknown, body: string) => void,
  ): FrameStream<Out> {
    const pipe = this.#child.stdio[descriptor] as Duplex;
    // A host that dies takes its end of the pipe with it; 'exit' says so.
    pipe.on('error', () => undefined);
    return frameStream(pipe, onFrame, () => this.kill('ended'));
  }

  #take(header: unknown, resolveReady: () => void): void {
    const message = readHostMessage(header);
    if (message === undefined) throw new TypeError('not a message of a host');
    this.#heard_at_ms = monotonicNow();
    if (message.kind === 'ready') this.#becomeReady(resolveReady);
    else {
      this.#busy = message.ids;
      this.#threads.noteHolders(message.ids);
    }
  }

  #takeOfThread(index: number, header: unknown, body: string): void {
    const message = readThreadMessage(header);
    if (message === undefined) throw new TypeError('not a message of a thread');
    this.#heard_at_ms = monotonicNow();
    // Also throws, and whatever throws here ends the host.
    if (!this.#threads.take(index, message)) return;
    if (message.kind === 'result') this.#options.onResult(message, body);
    else if (message.kind !== 'unknown_script') this.#options.onCall(message, body);
  }

  #becomeReady(resolveReady: () => void): void {
    const network = this.pid === undefined ? undefined : networkOf(this.pid);
    const cutOff = network !== undefined && network !== networkOf('self');
    this.#network = cutOff ? 'none' : 'shared';
    // From here on it prints only what V8 says when it aborts, which may quote a script's values.
    this.#lastWords = '';
    this.#child.stderr?.removeAllListeners('data').resume();
    this.#isReady = true;
    this.#threads.open();
    resolveReady();
  }

  #watch(): void {
    if (this.#threads.isIdle || this.#lost !== undefined) {
      clearInterval(this.#poll);
      this.#poll = undefined;
      return;
    }
    const now = monotonicNow();
    if (this.#comesLate(now)) return;
    const overdue = this.#threads.messages().filter((run) => now > run.ends_at_ms + GRACE_MS);
    const holding = overdue.filter((run) => this.#busy.includes(run.id));
    if (holding.length > 0 || this.#busy.some((id) => this.#threads.isAbandoned(id))) {
      this.#overdue = holding.map((run) => run.id);
      this.kill('deadline');
    } else if (this.#rssBytes() > this.#options.rss_bytes_max) this.kill('memory');
    else if (now - this.#heard_at_ms > this.#patience_ms) this.kill('silence');
    else {
      for (const run of [...overdue, ...this.#threads.expired(now)]) this.#giveUp(run);
      this.#threads.placeWaiting();
    }
  }

  /** Timers come before what is in the pipes: one round of them is heard first. Never twice in a row. */
  #comesLate(now: number): boolean {
    const isGap = now - this.#watched_at_ms > GAP_MS;
    this.#watched_at_ms = now;
    this.#isBehindGap = isGap && !this.#isBehindGap;
    if (isGap) this.#heard_at_ms = now;
    return this.#isBehindGap;
  }

  get #patience_ms(): number {
    return this.#isReady ? SILENCE_MS_MAX : START_MS_MAX;
  }

  /** It waits for a thread, or behind others of its tenant; nothing it did holds the host. */
  #giveUp(run: RunMessage): void {
    if (!this.#threads.has(run.id)) return;
    this.#threads.abandon(run.id);
    this.#options.onResult({ kind: 'result', id: run.id, ending: 'timeout', console: [] }, '');
  }

  #rssBytes(): number {
    try {
      const pages = readFileSync(`/proc/${this.pid}/statm`, 'latin1').split(' ')[1];
      return Number(pages) * PAGE_BYTES;
    } catch {
      // No /proc (macOS) or already gone: V8's own bound per isolate is what is left.
      return 0;
    }
  }

  #end(how: string | undefined): void {
    clearInterval(this.#poll);
    const reason = this.#lost ?? 'ended';
    const holders = this.#holders.readAndClose();
    const named = reason === 'deadline' ? this.#overdue : reason === 'memory' ? [] : holders;
    const inside = new Set(named.filter((id) => this.#threads.has(id)));
    // Whoever ends a host holds a thread of it. Memory is held by whoever holds it, not by who computes.
    const isOutside = reason === 'ended' && this.#holders.isKnown;
    const placed = new Set(this.#threads.placedIds());
    // Who was over time is known, and may be nobody's run any more.
    const ids = inside.size > 0 || isOutside || reason === 'deadline' ? inside : placed;
    const held = this.#holders.isKnown ? holders.length > 0 : placed.size > 0;
    this.#threads.clear();
    const seen = inside.size > 0 || reason !== 'ended';
    const suspects = { held, placed, ids, seen };
    this.#options.onLost(reason, suspects, this.#lost === undefined ? how : undefined);
  }
}

/** Bytes of a memory page, from what this process knows of itself both ways; 4096 without /proc. */
function pageBytes(): number {
  try {
    const pages = Number(readFileSync('/proc/self/statm', 'latin1').split(' ')[1]);
    return 2 ** Math.round(Math.log2(process.memoryUsage.rss() / pages));
  } catch {
    return 4096;
  }
}
