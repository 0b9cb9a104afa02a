/** How much memory a host may have before it is ended, with what its threads may hold. */

/** Idle isolates of a thread, and one that runs into its own bound on it. */
const RSS_BYTES_PER_THREAD = 224 * 1024 * 1024;
/** What a host takes without any. */
const RSS_BYTES_HOST = 128 * 1024 * 1024;
/** With four threads, and with fewer: results and arguments are copied on their way. */
const RSS_BYTES_MIN = 1024 * 1024 * 1024;

export const rssBytesMax = (thread_count: number): number =>
  Math.max(RSS_BYTES_MIN, RSS_BYTES_HOST + thread_count * RSS_BYTES_PER_THREAD);
