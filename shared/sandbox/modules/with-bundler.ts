/** esbuild's process serves all calls of this one, and would stay for as long as it: it ends with the last. */
import { stop } from 'esbuild';

let callers = 0;

/** Runs `work`, which bundles. */
export async function withBundler<T>(work: () => Promise<T>): Promise<T> {
  callers += 1;
  try {
    return await work();
  } finally {
    callers -= 1;
    if (callers === 0) await stop();
  }
}
