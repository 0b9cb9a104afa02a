/**
 * A sandbox host: the process that customer code may break. It speaks frames on descriptor 3 and has
 * nothing else: no environment, no keys, no files but our code. It ends with the gateway.
 */
import { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import { frameStream } from '../frames.ts';
import {
  BUSY_REPORT_MS,
  type GatewayMessage,
  type HostMessage,
  monotonicNow,
  type RunMessage,
  SIGN_OF_LIFE_MS,
} from '../protocol.ts';
import type { ThreadReport, ThreadRun } from './isolate-thread.ts';
import { IsolateThreads } from './isolate-threads.ts';
import { readModuleBundles } from './module-bundles.ts';

const PIPE_DESCRIPTOR = 3;
/** Sources kept for threads that have not got them, UTF-16 units in all. */
const SOURCES_CHARACTERS_MAX = 32 * 1024 * 1024;

const thread_count = Number(process.argv[2]);
/** Where the bundled npm modules are. */
const modules_folder = process.argv[3] ?? '';
/** Whom to become when all code is loaded; absent when we are nobody special to begin with. */
const unprivileged_id = process.argv[4];
const pipe = new Socket({ fd: PIPE_DESCRIPTOR, readable: true, writable: true });
// Not `exit`, which waits for threads: one that squares a BigInt does not listen.
const end = (): void => void process.kill(process.pid, 'SIGKILL');
pipe.on('close', end);
pipe.on('end', end);
pipe.on('error', end);

const sources = new LRUCache<string, string>({
  maxSize: SOURCES_CHARACTERS_MAX,
  sizeCalculation: (source) => source.length + 1,
});
const runs = new Map<number, ThreadRun>();
/** Came before the threads were ready: no script runs while this process may still be root. */
const early: ThreadRun[] = [];
let isReady = false;
const stream = frameStream<HostMessage>(
  pipe,
  // The gateway is the one side that is trusted to send what the protocol says.
  (header, body) => receive(header as GatewayMessage, body),
  end,
);

function receive(message: GatewayMessage, body: string): void {
  if (message.kind === 'answer') threads.answer(message, body);
  else receiveRun(message, body);
}

function receiveRun(run: RunMessage, body: string): void {
  if (run.source_length > 0) sources.set(run.script_key, body.slice(0, run.source_length));
  const plain = { run: { ...run, source_length: 0 }, body: body.slice(run.source_length) };
  runs.set(run.id, plain);
  if (isReady) threads.dispatch(plain);
  else early.push(plain);
}

function report({ message, body }: ThreadReport): void {
  const run = runs.get(message.id);
  if (message.kind === 'result') {
    const source = run === undefined ? undefined : sources.get(run.run.script_key);
    if (message.ending === 'unknown_script' && run !== undefined && source !== undefined) {
      const whole = { ...run.run, source_length: source.length };
      threads.dispatch({ run: whole, body: source + run.body });
      return;
    }
    runs.delete(message.id);
  } else if (message.kind === 'call' && run !== undefined && run.body !== '') {
    // It has started: its arguments are not needed here any more, and it may wait for long.
    runs.set(message.id, { run: run.run, body: '' });
  }
  stream.send(message, body);
}

/** All threads have loaded what they need. Throws, which ends the host, rather than stay root. */
function becomeReady(): void {
  if (unprivileged_id !== undefined) {
    const id = Number(unprivileged_id);
    process.setgroups?.([]);
    process.setgid?.(id);
    process.setuid?.(id);
  }
  isReady = true;
  for (const run of early.splice(0)) threads.dispatch(run);
  stream.send({ kind: 'ready' });
}

let reported = '';
let reportedAt_ms = 0;
function reportBusy(): void {
  const ids = threads.busyRuns();
  const now = ids.join();
  threads.serveWaiting();
  if (now === reported && monotonicNow() - reportedAt_ms < SIGN_OF_LIFE_MS) return;
  stream.send({ kind: 'busy', ids });
  reported = now;
  reportedAt_ms = monotonicNow();
}

const threads = new IsolateThreads(
  thread_count,
  readModuleBundles(modules_folder),
  report,
  becomeReady,
  end,
);
setInterval(reportBusy, BUSY_REPORT_MS);
