/**
 * What V8 is told about the memory of a plane. Node would let the young generation grow to 100 MiB, most
 * of it empty; with halves of 16 MiB a worker stays below 200 MiB at full load (bench/memory.ts), with 24
 * it does not, and 16 take a tenth to a sixth less CPU than 8. Giving memory back earlier
 * (MALLOC_MMAP_THRESHOLD_) cost 12 %; an old generation that grows by less (--heap-growing-percent=80)
 * saves 60 MiB and takes twice the CPU where bodies are large.
 */

/** Of any Node that can run Sallyport. */
const FLAGS = [
  // One thread collects so little sooner than several agree on it: 2 to 9 % of all CPU less.
  '--no-parallel-scavenge',
  // What is allocated in one place may be put into the old generation from the start when much of it lived
  // long once, as it does while the first connections come; it then keeps each request alive until the next
  // major collection, and a process it happens to pays a fifth of its CPU for that as long as it lives.
  '--no-allocation-site-pretenuring',
];

/**
 * The bytes of bodies lie outside of the heap: V8 collects the young generation when its own hold four times
 * that capacity, by default 128 MiB; but over 64 MiB of them it has begun a major collection already, which
 * took half of all CPU at 64 KiB. At 32 MiB they go with the young: a fifth less CPU there, and streams hold
 * 5 MiB in place of 36. Newer V8s do not know the flag, and a Node that does not know a flag does not start.
 */
const OF_NODE_24 = ['--max-semi-space-size=16', '--scavenger-max-new-space-capacity-mb=8'];
/** Halves of 8 MiB are collected before so many bytes have gathered. */
const OF_NEWER = ['--max-semi-space-size=8'];

/** Command-line flags of a plane's process that runs on this version of Node. */
export function planeFlags(nodeVersion: string = process.versions.node): string[] {
  const isNode24 = nodeVersion.startsWith('24.');
  return [...(isNode24 ? OF_NODE_24 : OF_NEWER), ...FLAGS];
}
