/** The size of list pages whose items may be large: code, icons, configurations. */
import { fieldError } from '../shared/errors.ts';

/** Stored bytes of one page, as for tokens: a hundred of the largest would keep the event loop busy. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024;

/** Throws 400 `errors.size` when a page of `bytes` is too much for one answer. */
export function refuseLargePage(bytes: number): void {
  if (bytes <= PAGE_BYTES_MAX) return;
  throw fieldError('size', 'The page would be over 16 MiB: ask for fewer entries at once');
}
