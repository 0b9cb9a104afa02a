/** How deep scripts may call each other: reactors, and the transforms of proxies. */
import { ApiError } from '../../shared/errors.ts';

/** A script that calls one that calls one. */
export const REACTOR_DEPTH_MAX = 3;

/** Throws 400 when a run as deep as this may not start another. */
export function refuseDepth(depth: number): void {
  if (depth < REACTOR_DEPTH_MAX) return;
  const detail = `Reactors may call each other at most ${REACTOR_DEPTH_MAX} deep`;
  throw new ApiError('bad_request', detail);
}
