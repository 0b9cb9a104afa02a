/** Starts the `workerd` binary, a runtime of isolates in C++, installing it when it is not there. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Stoppable } from '../lab.ts';

const FOLDER = join(import.meta.dirname, 'workerd');
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: '64', arm64: 'arm64' };
const START_MS = 10_000;

export interface Workerd extends Stoppable {
  readonly pid: number;
}

/** Settles when it listens on `port` of loopback. Throws when it cannot be installed or started. */
export async function startWorkerd(port: number): Promise<Workerd> {
  const program = await programPath();
  const argv = ['serve', 'config.capnp', `--socket-addr=http=127.0.0.1:${port}`];
  const child = spawn(program, argv, { cwd: FOLDER, stdio: ['ignore', 'ignore', 'inherit'] });
  const exited = once(child, 'exit');
  const { pid } = child;
  if (pid === undefined) throw new Error('workerd could not be started');
  await Promise.race([
    untilListening(port),
    exited.then(() => Promise.reject(new Error('workerd ended by itself'))),
  ]);
  return {
    pid,
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function programPath(): Promise<string> {
  const architecture = ARCHITECTURES[process.arch];
  const name = `@cloudflare/workerd-${process.platform}-${architecture}/bin/workerd`;
  const path = join(FOLDER, 'node_modules', name);
  if (!existsSync(path)) await promisify(execFile)('npm', ['ci'], { cwd: FOLDER });
  return path;
}

async function untilListening(port: number): Promise<void> {
  const until = performance.now() + START_MS;
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (isOpen) return;
    if (performance.now() > until) throw new Error('workerd does not listen');
    await delay(50);
  }
}
