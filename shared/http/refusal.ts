/**
 * Why a request is turned away before anything looks at its meaning. Refusals are constants: they
 * cost nothing to make and cannot carry an input value.
 */
import type { ErrorCode } from '../errors.ts';

export interface Refusal {
  readonly code: ErrorCode;
  readonly detail: string;
  /** True when what follows on the connection can no longer be trusted: answer, then close it. */
  readonly close: boolean;
}

/** A doubt about framing or origin: 400 and close (design section 9, strict layer). */
export function doubt(detail: string): Refusal {
  return { code: 'bad_request', detail, close: true };
}

/** A request that is understood and wrong; the connection stays usable. */
export function mistake(code: ErrorCode, detail: string): Refusal {
  return { code, detail, close: false };
}
