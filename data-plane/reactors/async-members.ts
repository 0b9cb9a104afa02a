/** The members by which a call of a reactor is asynchronous: where its result goes, and its time. */
import { DESTINATION_PROBLEMS, destinationProblems } from '../../shared/egress/destination-url.ts';
import type { AddressRange } from '../../shared/egress/ip-address.ts';
import { type FieldErrors, validationError } from '../../shared/errors.ts';
import { DEADLINE_MS_MAX } from '../../shared/sandbox/protocol.ts';

export interface AsyncMembers {
  readonly callback_url: string;
  readonly timeout_ms: number;
}

/** Existing clients send one spelling or the other. */
const CALLBACK_NAMES = ['callback_url', 'callbackUrl'];
const TIMEOUT_NAMES = ['timeout_ms', 'timeoutMs'];
const CALLBACK_URL_LENGTH_MAX = 2_048;
/** Spec: Limits. */
const TIMEOUT_MS_MIN = 10_000;
const TIMEOUT_MS_DEFAULT = 10_000;

interface Member {
  readonly name: string;
  readonly value: unknown;
}

/**
 * `undefined` for a synchronous call, whose time is not the caller's to set. Throws 400 for an address
 * that the egress guard could never reach, and for a time out of bounds. `allow`: the operator's ranges.
 */
export function readAsyncMembers(
  body: object,
  allow: readonly AddressRange[],
): AsyncMembers | undefined {
  const callback = memberOf(body, CALLBACK_NAMES);
  if (callback === undefined) return undefined;
  const errors: FieldErrors = {};
  const problems = urlProblems(callback.value, allow);
  if (problems.length > 0) errors[callback.name] = problems;
  const timeout_ms = readTimeout(body, errors, TIMEOUT_MS_DEFAULT);
  if (Object.keys(errors).length > 0) throw validationError(errors);
  return { callback_url: String(callback.value), timeout_ms };
}

/** The time of a call without callback, which is asynchronous all the same. Throws 400 out of bounds. */
export function readAsyncTimeout(body: object): number {
  const errors: FieldErrors = {};
  const timeout_ms = readTimeout(body, errors, DEADLINE_MS_MAX);
  if (Object.keys(errors).length > 0) throw validationError(errors);
  return timeout_ms;
}

/** The member under the first of its names that is there; null is as good as absent. */
function memberOf(body: object, names: readonly string[]): Member | undefined {
  for (const name of names) {
    const value: unknown = Object.hasOwn(body, name) ? Reflect.get(body, name) : null;
    if (value !== null) return { name, value };
  }
  return undefined;
}

function urlProblems(value: unknown, allow: readonly AddressRange[]): string[] {
  if (typeof value !== 'string') return ['Must be a string'];
  const problems: string[] = destinationProblems(value, allow, CALLBACK_URL_LENGTH_MAX).map(
    (problem) => DESTINATION_PROBLEMS[problem],
  );
  if (value.includes('#')) problems.push('The URL must not contain a fragment');
  return problems;
}

function readTimeout(body: object, errors: FieldErrors, absent: number): number {
  const { name, value } = memberOf(body, TIMEOUT_NAMES) ?? { name: '', value: absent };
  const isTime =
    Number.isSafeInteger(value) &&
    (value as number) >= TIMEOUT_MS_MIN &&
    (value as number) <= DEADLINE_MS_MAX;
  if (!isTime) errors[name] = [`Must be an integer from ${TIMEOUT_MS_MIN} to ${DEADLINE_MS_MAX}`];
  return value as number;
}
