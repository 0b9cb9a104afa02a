/** Runs `npm start`'s and the command line's programs for a test, as an operator's shell would. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Program {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Settles with the first match in stdout; rejects when the program ends without one. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  /** Settles when it has ended and everything it wrote was read. */
  finished: Promise<Finished>;
}

/** Variables of the machine that a program of ours may see; settings of ours are not among them. */
const INHERITED = ['PATH', 'HOME', 'TMPDIR', 'NODE_V8_COVERAGE', 'NODE_COMPILE_CACHE'];

/** Starts `entry` (from the root of the repository) with exactly these settings. */
export function startProgram(
  entry: string,
  args: readonly string[],
  settings: NodeJS.ProcessEnv,
): Program {
  const path = fileURLToPath(new URL(`../../${entry}`, import.meta.url));
  const inherited = Object.fromEntries(INHERITED.map((name) => [name, process.env[name]]));
  const child = spawn(process.execPath, [path, ...args], {
    env: { ...inherited, NODE_ENV: 'test', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const watchers = new Set<() => void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    for (const watcher of watchers) watcher();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const finished = once(child, 'close').then(([code, signal]) => ({
    code,
    signal,
    stdout,
    stderr,
  }));
  return {
    child,
    finished,
    stdout: () => stdout,
    stderr: () => stderr,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(stdout);
          if (match === null) return;
          watchers.delete(look);
          resolve(match);
        };
        watchers.add(look);
        look();
        void finished.then(() => reject(new Error(`ended without ${pattern}: ${stdout}${stderr}`)));
      }),
  };
}
