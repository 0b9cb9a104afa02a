/** The `destination_url` of a request, judged before it is stored (attacks C-13). */
import { DESTINATION_URL_LENGTH_MAX } from '../../shared/api/proxies.ts';
import { DESTINATION_PROBLEMS, destinationProblems } from '../../shared/egress/destination-url.ts';
import type { AddressRange } from '../../shared/egress/ip-address.ts';
import { validationError } from '../../shared/errors.ts';

/**
 * Throws 400 `errors.destination_url` for what the egress guard could never reach, and for a fragment:
 * it is never sent. `allow`: the operator's own ranges, which the guard judges by again at each call.
 */
export function checkDestination(url: string, allow: readonly AddressRange[]): void {
  const problems: string[] = destinationProblems(url, allow, DESTINATION_URL_LENGTH_MAX).map(
    (problem) => DESTINATION_PROBLEMS[problem],
  );
  if (url.includes('#')) problems.push('The URL must not contain a fragment');
  if (problems.length > 0) throw validationError({ destination_url: problems });
}
