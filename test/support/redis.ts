/**
 * A real `redis-server` for a test, found on PATH, on a free loopback port and without files. Where
 * there is none the tests say so loudly; with `CI` set that is an error.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import { skipLoudly } from './skip.ts';

export interface TestRedis {
  /** As `REDIS_URL`. */
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Another program may take the port between its choice and its use. */
const ATTEMPTS = 5;

/** Starts one, or skips the suite: call it in `before(async function () { … })` with its `this`. */
export async function startRedisOrSkip(context: Mocha.Context): Promise<TestRedis> {
  const redis = await startRedis();
  if (redis !== undefined) return redis;
  return skipLoudly(context, 'redis-server is not on PATH; install it to run what needs it');
}

/** Starts one; `undefined` when the program is not installed. */
export async function startRedis(): Promise<TestRedis | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const child = launch(port);
    const outcome = await Promise.race([ready(child), failed(child)]);
    if (outcome === 'ready') return running(child, port);
    if (outcome === 'ENOENT') return undefined;
    if (attempt === ATTEMPTS) throw new Error(`redis-server does not start: ${outcome}`);
  }
}

function launch(port: number): ChildProcess {
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--dir', tmpdir()];
  return spawn('redis-server', [...settings, '--save', '', '--appendonly', 'no'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

function ready(child: ChildProcess): Promise<'ready'> {
  const { promise, resolve } = Promise.withResolvers<'ready'>();
  const output = child.stdout as NodeJS.ReadableStream;
  createInterface({ input: output }).on('line', (line) => {
    if (line.includes('Ready to accept connections')) resolve('ready');
  });
  return promise;
}

/** How it ended, or the code of the error that kept it from starting. */
function failed(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`));
  });
}

function running(child: ChildProcess, port: number): TestRedis {
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid as number,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      // A stopped process takes a SIGKILL at once, but no other signal.
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address !== null && typeof address === 'object' ? address.port : 0;
}
