/**
 * The files of a host's own code in the folder that `ensureModuleBundles` makes: bundled ahead, since each
 * thread that strips types by itself takes another 160 ms of CPU and 20 MiB.
 */
export const HOST_FILE = 'sandbox-host.mjs';
export const THREAD_FILE = 'sandbox-thread.mjs';
/** Source of the script that runs first in every context. */
export const PRELUDE_FILE = 'sandbox-prelude.js';
