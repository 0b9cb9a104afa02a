/** A proxy that is stored nowhere: its destination comes with the request, in BT-PROXY-URL. */
import { randomUUID } from 'node:crypto';
import { DESTINATION_PROBLEMS, destinationProblems } from '../../shared/egress/destination-url.ts';
import { ApiError } from '../../shared/errors.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CachedProxy } from '../config-cache/proxy-cache.ts';
import type { ProxyServices } from '../services.ts';
import { readDestination } from './destination.ts';

/**
 * The proxy to `url` with the rights of `application`; `undefined` when there is no application. Throws
 * 400 without a URL, with one that is no destination, and where the operator did not allow them.
 */
export function ephemeralProxy(
  url: string | undefined,
  application: CachedApplication | undefined,
  { ephemeral, egressAllow }: Pick<ProxyServices, 'ephemeral' | 'egressAllow'>,
): CachedProxy | undefined {
  if (!ephemeral || url === undefined) {
    throw new ApiError('bad_request', missingDetail(url, ephemeral));
  }
  if (application === undefined) return undefined;
  const [problem] = destinationProblems(url, egressAllow);
  if (problem !== undefined || url.includes('#')) {
    const reason = DESTINATION_PROBLEMS[problem ?? 'form'];
    throw new ApiError('bad_request', `The BT-PROXY-URL header is invalid: ${reason}`);
  }
  const { tenant_id, config_version } = application;
  return {
    ...{ tenant_id, config_version, proxy_id: randomUUID(), slot: '', keyHash: Buffer.alloc(0) },
    ...{ destination_url: url, destination: readDestination(url), require_auth: true },
    ...{ request_transform: null, response_transform: null, application_id: null },
    ...{ configuration_sealed: null, leak_tripwire: 'report' },
  };
}

function missingDetail(url: string | undefined, ephemeral: boolean): string {
  if (ephemeral) return 'The BT-PROXY-KEY or the BT-PROXY-URL header is missing';
  const missing = 'The BT-PROXY-KEY header (or the parameter bt-proxy-key) is missing';
  if (url === undefined) return missing;
  return `${missing}; BT-PROXY-URL is not served here without SALLYPORT_EPHEMERAL_PROXY`;
}
