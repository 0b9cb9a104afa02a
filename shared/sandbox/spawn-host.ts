/** Starts the process of a sandbox host, or leaves nothing behind. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { HOST_FILE, THREAD_FILE } from './code-files.ts';
import { isOursNow } from './modules/private-folder.ts';
import type { ThreadHolders } from './thread-holders.ts';

/** What `spawn` takes beside both ends of the pipes: its own pipe and /dev/null twice. */
const SPAWN_DESCRIPTORS = 4;
const NO_DESCRIPTORS = 'no descriptors are left';

/** Throws when the system gives it no process or no pipe; nothing is left open then. */
export function spawnHost(
  [program, argv]: [string, string[]],
  thread_count: number,
  holders: ThreadHolders,
): ChildProcess {
  try {
    const pipes = Array.from({ length: thread_count }, () => 'pipe' as const);
    requireDescriptors(2 * (pipes.length + 2) + SPAWN_DESCRIPTORS);
    const child = spawn(program, argv, {
      cwd: '/',
      env: {},
      // A session of its own: Ctrl-C in the terminal is for the gateway.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', holders.descriptor ?? 'ignore', ...pipes],
    });
    // Said without descriptors for its pipes, too, when nothing else gets to listen.
    child.on('error', () => undefined);
    if ((child.stdio as unknown) === undefined) throw new Error(NO_DESCRIPTORS);
    return child;
  } catch (error) {
    holders.readAndClose();
    throw error;
  }
}

/** Throws unless there is room for this many: pipes of a `spawn` that fails half-way stay open for ever. */
function requireDescriptors(count: number): void {
  const opened: number[] = [];
  try {
    while (opened.length < count) opened.push(openSync('/dev/null', 'r'));
  } catch (error) {
    throw new Error(NO_DESCRIPTORS, { cause: error });
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

/**
 * Throws unless only we or root can have written what is about to run. A folder in a temporary one may have
 * been removed since it was made, and another put in its place.
 */
export function requireOurCode(folder: string): void {
  const isIntact =
    isOursNow(dirname(folder), 'directory') &&
    isOursNow(folder, 'directory') &&
    [HOST_FILE, THREAD_FILE].every((file) => isOursNow(join(folder, file), 'file'));
  if (!isIntact) throw new Error('the code of sandbox hosts is gone, or others can write to it');
}
