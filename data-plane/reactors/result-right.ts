/** Whether what came of a reaction may still be shown to whoever asked for it. */
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Exchange } from '../exchange.ts';
import { requireHeld } from '../routes/permit.ts';
import type { ReactingServices } from '../services.ts';
import { USE, UsedContainers } from '../used-containers.ts';
import { findReactor } from './find-reactor.ts';
import type { FoundResult } from './result-store.ts';

/**
 * Throws 403 when the application could not use those tokens now, 404 when the reactor is gone, and
 * `StaleConfigError` when its configuration is not the current one. It is confirmed when this returns.
 */
export async function requireResultRight(
  { reactor_id, used }: FoundResult,
  exchange: Exchange,
  application: CachedApplication,
  services: ReactingServices,
): Promise<void> {
  requireHeld(application, USE);
  new UsedContainers(used).requireStill(application);
  await findReactor(reactor_id, application, services);
  exchange.confirm(application, await services.gate.read(application.tenant_id));
}
