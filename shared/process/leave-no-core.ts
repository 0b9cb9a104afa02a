/** What a crash may leave on disk: nothing of this process's memory, which holds keys and values. */
import { writeFileSync } from 'node:fs';

/**
 * Leaves every mapping out of a core dump, of this process and of those it starts. Where there is no
 * such file the limit of whoever started us counts; planes are started with `ulimit -c 0` besides.
 */
export function leaveNoCore(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0');
  } catch {
    // Not Linux, or not allowed to: nothing else can be done from inside.
  }
}
