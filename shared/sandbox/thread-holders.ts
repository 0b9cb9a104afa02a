/**
 * Which run holds which thread of a host, as the threads wrote it last: whoever ends a host holds a thread as it
 * does. In a file that has no name, so that it outlives the host and nothing else; it holds numbers only.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HOLDER_BYTES } from './protocol.ts';

/** In memory where there is such a folder. */
const FOLDERS = ['/dev/shm', tmpdir()];

export class ThreadHolders {
  /** Of this process; `undefined` where no file can be made, and nothing is known. */
  readonly descriptor: number | undefined;
  readonly #thread_count: number;

  constructor(thread_count: number) {
    this.#thread_count = thread_count;
    this.descriptor = openUnnamed(thread_count * HOLDER_BYTES);
  }

  get isKnown(): boolean {
    return this.descriptor !== undefined;
  }

  /**
   * For each thread the id of the run that holds it now, or 0; 0 for all where there is no such file, and
   * what is no id where it cannot be read.
   */
  read(): Int32Array {
    const holders = new Int32Array(this.#thread_count);
    try {
      if (this.descriptor !== undefined) {
        readSync(this.descriptor, holders, 0, holders.byteLength, 0);
      }
      return holders;
    } catch {
      return holders.fill(-1);
    }
  }

  /** Ids of the runs that hold a thread. Gives the file back: call it once, when the host has ended. */
  readAndClose(): number[] {
    const holders = this.read();
    if (this.descriptor !== undefined) closeSync(this.descriptor);
    return [...holders].filter((id) => id !== 0);
  }
}

/** Filled now: a disk that is full later has room for what is there. */
function openUnnamed(bytes: number): number | undefined {
  for (const folder of FOLDERS) {
    const path = join(folder, `sallyport-${randomBytes(16).toString('hex')}`);
    let descriptor: number | undefined;
    try {
      descriptor = openSync(path, 'wx+', 0o600);
      unlinkSync(path);
      writeSync(descriptor, Buffer.alloc(bytes));
      return descriptor;
    } catch {
      // The next folder, or none.
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }
  return undefined;
}
