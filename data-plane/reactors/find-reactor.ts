/** The reactor of a request, as its tenant has it now. */
import { ApiError } from '../../shared/errors.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CachedReactor } from '../config-cache/reactor-cache.ts';
import type { ReactingServices, Services } from '../services.ts';
import { StaleConfigError } from '../version-gate.ts';

/** Ids that no row can have are not asked for. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The reactor at the very version its caller is judged by; a promise only where it must be read. Throws 404,
 * also for those of other tenants, and `StaleConfigError` when the configuration has moved on since the caller
 * was found.
 */
export function findReactor(
  id: string,
  application: CachedApplication,
  services: ReactingServices,
): CachedReactor | Promise<CachedReactor> {
  if (!isUuid(id)) throw reactorNotFound();
  const { tenant_id, config_version } = application;
  const { reactors } = services.reactions;
  const found = reactors.at(tenant_id, id.toLowerCase(), config_version);
  const isCurrent = !(found instanceof Promise) && found.config_version === config_version;
  return isCurrent ? found : currentReactor(found, application, services);
}

async function currentReactor(
  found: CachedReactor | Promise<CachedReactor | undefined>,
  { tenant_id, config_version }: CachedApplication,
  { gate }: ReactingServices,
): Promise<CachedReactor> {
  const reactor = await found;
  if (reactor === undefined) throw reactorNotFound();
  if (reactor.config_version === config_version) return reactor;
  throw new StaleConfigError(await gate.read(tenant_id));
}

export function isUuid(id: string): boolean {
  return UUID.test(id);
}

export function reactorNotFound(): ApiError {
  return new ApiError('not_found', 'The reactor does not exist');
}

/** Throws 503 in a data plane without a sandbox. */
export function requireReactions(services: Services): asserts services is ReactingServices {
  if (services.reactions === undefined) {
    throw new ApiError('unavailable', 'No reactors are run here');
  }
}
