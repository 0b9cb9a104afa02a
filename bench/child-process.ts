/**
 * A process of the bench itself: a peer that serves, or a load that asks. It is told its settings in
 * the first message and says when it is ready; one that fails ends the bench, never a silent round.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface BenchProcess<Ready> {
  readonly pid: number;
  /** What it said when it was ready. */
  readonly ready: Ready;
  /** Sends a message and settles with the next answer. */
  ask<Answer>(message: object): Promise<Answer>;
  stop(): Promise<void>;
}

/** `entry` is relative to bench/, e.g. `peers/hello.ts`. */
export async function startProcess<Ready>(
  entry: string,
  settings: object,
): Promise<BenchProcess<Ready>> {
  const path = fileURLToPath(new URL(entry, import.meta.url));
  const child = fork(path, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${entry} could not be started`);
  const ready = await ask<Ready>(child, entry, settings);
  return {
    pid,
    ready,
    ask: (message) => ask(child, entry, message),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function ask<Answer>(child: ChildProcess, entry: string, message: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      child.off('message', onMessage).off('exit', onExit);
    };
    const onMessage = (answer: unknown): void => {
      settle();
      resolve(answer as Answer);
    };
    const onExit = (): void => {
      settle();
      reject(new Error(`${entry} ended by itself; what it said is above`));
    };
    child.on('message', onMessage).on('exit', onExit);
    // With the callback, a channel that is closed is not an event that ends this process.
    child.send(message, (error) => error !== null && onExit());
  });
}

/**
 * The other side, in the child: `begin` gets the settings and answers what makes it ready, and
 * `serve` answers each later message.
 */
export function runAsBenchProcess<Settings>(begin: (settings: Settings) => Promise<Begun>): void {
  // The parent is gone: nobody would stop this process.
  process.on('disconnect', () => process.exit(1));
  process.once('message', async (settings: Settings) => {
    const { ready, serve } = await begin(settings);
    process.on('message', async (message) => {
      if (serve !== undefined) process.send?.(await serve(message as never));
    });
    process.send?.(ready);
  });
}

interface Begun {
  readonly ready: object;
  readonly serve?: (message: never) => Promise<object>;
}
