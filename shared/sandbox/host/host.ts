/**
 * A sandbox host: the process that customer code may break. It speaks frames on descriptors of its own,
 * its threads on theirs, and has nothing else: no environment, no keys, no files but our code. It ends
 * with the gateway.
 */
import { Socket } from 'node:net';
import { frameStream } from '../frames.ts';
import {
  BUSY_REPORT_MS,
  HOST_DESCRIPTOR,
  type HostMessage,
  monotonicNow,
  type RoutedAnswer,
  SIGN_OF_LIFE_MS,
} from '../protocol.ts';
import { IsolateThreads } from './isolate-threads.ts';
import { readModuleBundles } from './module-bundles.ts';

const thread_count = Number(process.argv[2]);
/** Where the bundled npm modules are. */
const modules_folder = process.argv[3] ?? '';
/** Whom to become when all code is loaded; absent when we are nobody special to begin with. */
const unprivileged_id = process.argv[4];
const pipe = new Socket({ fd: HOST_DESCRIPTOR, readable: true, writable: true });
// Not `exit`, which waits for threads: one that squares a BigInt does not listen.
const end = (): void => void process.kill(process.pid, 'SIGKILL');
pipe.on('close', end);
pipe.on('end', end);
pipe.on('error', end);

const stream = frameStream<HostMessage>(
  pipe,
  // The gateway is the one side that is trusted to send what the protocol says.
  (header, body) => threads.answer(header as RoutedAnswer, body),
  end,
);

/** All threads have loaded what they need. Throws, which ends the host, rather than stay root. */
function becomeReady(): void {
  if (unprivileged_id !== undefined) {
    const id = Number(unprivileged_id);
    process.setgroups?.([]);
    process.setgid?.(id);
    process.setuid?.(id);
  }
  // The gateway sends the first run when it has heard this.
  stream.send({ kind: 'ready' });
}

let reported = '';
let reportedAt_ms = 0;
function reportBusy(ids: number[]): void {
  const now = ids.join();
  if (now === reported && monotonicNow() - reportedAt_ms < SIGN_OF_LIFE_MS) return;
  stream.send({ kind: 'busy', ids });
  reported = now;
  reportedAt_ms = monotonicNow();
}

/** A host in which nothing has run for a second rests: looking all the time takes 1 % of a core. */
const REST_AFTER_LOOKS = 1_000 / BUSY_REPORT_MS;
let quietLooks = 0;
let isResting = false;
let looking: NodeJS.Timeout | undefined;

function look(): void {
  const { busy, isQuiet } = threads.look();
  reportBusy(busy);
  if (!isQuiet) wake();
  else if (!isResting) {
    quietLooks += 1;
    if (quietLooks >= REST_AFTER_LOOKS) rest();
  }
}

function lookEach(ms: number): void {
  clearInterval(looking);
  looking = setInterval(look, ms);
}

/** Only signs of life, until a run gets a thread. */
function rest(): void {
  isResting = true;
  lookEach(SIGN_OF_LIFE_MS / 2);
  threads.awaitChange(wake);
}

function wake(): void {
  quietLooks = 0;
  if (!isResting) return;
  isResting = false;
  lookEach(BUSY_REPORT_MS);
}

const threads = new IsolateThreads(
  thread_count,
  readModuleBundles(modules_folder),
  becomeReady,
  end,
);
lookEach(BUSY_REPORT_MS);
