/** A Redis of the test's own that can be stopped, continued and killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';

export interface TestRedis {
  readonly url: string;
  /** A client of the test's own; for the attacker's view. Connected on demand. */
  client(): Redis;
  /** SIGSTOP: it accepts and never answers. */
  pause(): void;
  resume(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again, empty, where it was. */
  restart(): Promise<void>;
  /** Everything it holds, uncompressed, as its snapshot on disk. */
  dump(): Promise<Buffer>;
  stop(): Promise<void>;
}

const INSTALL = 'the Redis suites need a redis-server on PATH: they were NOT run';

/** Starts a server, or skips the suite with a loud reason when there is none to start. */
export async function startRedis(context: Mocha.Context): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-redis-'));
  const port = await freePort();
  let server = await launch(port, directory).catch(async (error: unknown) => {
    await rm(directory, { recursive: true });
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (!isMissing || process.env.CI !== undefined) throw error;
    process.stderr.write(`\n${INSTALL}\n`);
    return context.skip();
  });
  const url = `redis://127.0.0.1:${port}`;
  const clients: Redis[] = [];
  const client = (): Redis => {
    const one = new Redis(url, { maxRetriesPerRequest: 1 });
    one.on('error', () => undefined);
    clients.push(one);
    return one;
  };
  const kill = async (): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  return {
    url,
    client,
    pause: () => void server.kill('SIGSTOP'),
    resume: () => void server.kill('SIGCONT'),
    kill,
    restart: async () => {
      server = await launch(port, directory);
    },
    dump: async () => {
      await client().save();
      return readFile(join(directory, 'dump.rdb'));
    },
    stop: async () => {
      for (const one of clients) one.disconnect();
      await kill();
      await rm(directory, { recursive: true });
    },
  };
}

async function launch(port: number, directory: string): Promise<ChildProcess> {
  const options = { port, bind: '127.0.0.1', dir: directory, save: '', rdbcompression: 'no' };
  const argv = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = spawn('redis-server', argv, { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(server, 'spawn');
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.includes('Ready to accept connections')) break;
  }
  server.stdout.resume();
  if (server.exitCode !== null) throw new Error('redis-server did not start');
  return server;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  probe.listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
