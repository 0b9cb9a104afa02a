/**
 * One sandbox host as the gateway sees it: starts it, sends runs, watches its memory and deadlines, and
 * kills it. It decides nothing about what the runs in it get; that is its owner's (supervisor.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Duplex } from 'node:stream';
import { HOST_FILE, THREAD_FILE } from './code-files.ts';
import { type FrameStream, frameStream } from './frames.ts';
import { hostCommand, type Isolation, networkOf } from './host-command.ts';
import { isOursNow } from './modules/private-folder.ts';
import {
  type AnswerMessage,
  type CallMessage,
  type CancelMessage,
  type GatewayMessage,
  monotonicNow,
  type ResultMessage,
  type RunMessage,
  SILENCE_MS_MAX,
  START_MS_MAX,
} from './protocol.ts';
import { RunTable } from './run-table.ts';
import { readHostMessage } from './script-result.ts';
import { ThreadHolders } from './thread-holders.ts';

/** How often memory and deadlines are looked at while a run is in the host (design section 8). */
const POLL_MS = 20;
/** After its deadline a run still has this long to be ended by V8 inside. */
const GRACE_MS = 250;
const PIPE_DESCRIPTOR = 3;
/** Of what a host prints before it is ready, for the error that says why it is not. */
const LAST_WORDS_MAX = 2_000;
const PAGE_BYTES = pageBytes();

export type LossReason = 'deadline' | 'memory' | 'silence' | 'ended' | 'closed';

export interface Suspects {
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
  /** `suspects`: the runs that can have caused it; none when nobody in it can. */
  readonly onLost: (reason: LossReason, suspects: Suspects) => void;
}

export class HostProcess {
  /** Settles when the host can run scripts; rejects with its last words when it ends before. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  readonly #options: HostOptions;
  readonly #child: ChildProcess;
  readonly #stream: FrameStream<GatewayMessage>;
  readonly #inFlight = new RunTable<RunMessage>();
  readonly #known = new Set<string>();
  readonly #poll: NodeJS.Timeout;
  readonly #holders: ThreadHolders;
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
    this.#holders = new ThreadHolders(options.thread_count);
    const [program, argv] = hostCommand(
      options.isolation,
      options.thread_count,
      options.modules_folder,
    );
    this.#child = spawnHost(program, argv, this.#holders);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.ready = promise;
    promise.catch(() => undefined);
    const pipe = this.#child.stdio[PIPE_DESCRIPTOR] as Duplex;
    // A host that dies takes its end of the pipe with it; 'exit' says so.
    pipe.on('error', () => undefined);
    const broken = (): void => this.kill('ended');
    this.#stream = frameStream(pipe, (header, body) => this.#take(header, body, resolve), broken);
    this.#child.stderr?.on('data', (text: Buffer) => {
      if (this.#lastWords.length < LAST_WORDS_MAX) this.#lastWords += text.toString('latin1');
    });
    this.exited = new Promise((settle) => {
      const end = (): void => {
        reject(new Error(`a sandbox host ended: ${this.#lastWords.slice(0, LAST_WORDS_MAX)}`));
        settle();
        this.#end();
      };
      this.#child.once('exit', end);
      this.#child.once('error', end);
    });
    this.#poll = setInterval(() => this.#watch(), POLL_MS);
    this.#poll.unref();
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

  /** Sends a run; the source only when this host has not had it, or with `again`. */
  send(run: RunMessage, source: string, request: string, again = false): void {
    if (this.#inFlight.size === 0) this.#heard_at_ms = monotonicNow();
    const withSource = again || !this.#known.has(run.script_key);
    this.#known.add(run.script_key);
    this.#inFlight.set(run.id, run);
    if (withSource) this.#stream.send({ ...run, source_length: source.length }, source + request);
    else this.#stream.send(run, request);
  }

  /** Sends the answer of a call, unless its run has ended. */
  answer(message: AnswerMessage, body: string): void {
    if (this.#inFlight.has(message.id)) this.#stream.send(message, body);
  }

  /** Ends the host at once. `onLost` follows when it is gone. */
  kill(reason: LossReason): void {
    this.#lost ??= reason;
    this.#child.kill('SIGKILL');
  }

  #take(header: unknown, body: string, resolveReady: () => void): void {
    const message = readHostMessage(header);
    if (message === undefined) throw new TypeError('not a message of a host');
    this.#heard_at_ms = monotonicNow();
    if (message.kind === 'busy') this.#busy = message.ids;
    else if (message.kind === 'ready') this.#becomeReady(resolveReady);
    else if (message.kind === 'result') {
      if (this.#inFlight.delete(message.id)) this.#options.onResult(message, body);
    } else if (this.#inFlight.has(message.id)) this.#options.onCall(message, body);
  }

  #becomeReady(resolveReady: () => void): void {
    const network = this.pid === undefined ? undefined : networkOf(this.pid);
    const cutOff = network !== undefined && network !== networkOf('self');
    this.#network = cutOff ? 'none' : 'shared';
    // From here on it prints only what V8 says when it aborts, which may quote a script's values.
    this.#lastWords = '';
    this.#child.stderr?.removeAllListeners('data').resume();
    this.#isReady = true;
    resolveReady();
  }

  #watch(): void {
    if (this.#inFlight.size === 0 || this.#lost !== undefined) return;
    const now = monotonicNow();
    const overdue = this.#inFlight.values().filter((run) => now > run.ends_at_ms + GRACE_MS);
    const holding = overdue.filter((run) => this.#busy.includes(run.id));
    if (holding.length > 0) {
      this.#overdue = holding.map((run) => run.id);
      this.kill('deadline');
    } else if (this.#rssBytes() > this.#options.rss_bytes_max) this.kill('memory');
    else if (now - this.#heard_at_ms > this.#patience_ms) this.kill('silence');
    else for (const run of overdue) this.#giveUp(run);
  }

  get #patience_ms(): number {
    return this.#isReady ? SILENCE_MS_MAX : START_MS_MAX;
  }

  /** It waits behind others of its tenant; nothing it did holds the host. */
  #giveUp(run: RunMessage): void {
    this.#inFlight.delete(run.id);
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

  #end(): void {
    clearInterval(this.#poll);
    const reason = this.#lost ?? 'ended';
    const holders = this.#holders.readAndClose();
    const named = reason === 'deadline' ? this.#overdue : reason === 'memory' ? [] : holders;
    const inside = new Set(named.filter((id) => this.#inFlight.has(id)));
    // Whoever ends a host holds a thread of it. Memory is held by whoever holds it, not by who computes.
    const isOutside = reason === 'ended' && this.#holders.isKnown;
    const suspects =
      inside.size > 0 || isOutside ? inside : new Set(this.#inFlight.values().map(({ id }) => id));
    this.#inFlight.clear();
    this.#options.onLost(reason, { ids: suspects, seen: inside.size > 0 || reason !== 'ended' });
  }
}

/** Throws when the system gives it no process or no pipe; nothing is left open then. */
function spawnHost(program: string, argv: string[], holders: ThreadHolders): ChildProcess {
  try {
    const child = spawn(program, argv, {
      cwd: '/',
      env: {},
      // A session of its own: Ctrl-C in the terminal is for the gateway.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', holders.descriptor ?? 'ignore'],
    });
    // Said without descriptors for its pipes, too, when nothing else gets to listen.
    child.on('error', () => undefined);
    if ((child.stdio as unknown) === undefined) throw new Error('no descriptors are left');
    return child;
  } catch (error) {
    holders.readAndClose();
    throw error;
  }
}

/**
 * Throws unless only we or root can have written what is about to run. A folder in a temporary one may have
 * been removed since it was made, and another put in its place.
 */
function requireOurCode(folder: string): void {
  const isIntact =
    isOursNow(dirname(folder), 'directory') &&
    isOursNow(folder, 'directory') &&
    [HOST_FILE, THREAD_FILE].every((file) => isOursNow(join(folder, file), 'file'));
  if (!isIntact) throw new Error('the code of sandbox hosts is gone, or others can write to it');
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
