/**
 * Caller → application → route, and again when the configuration turns out to have changed: nothing a
 * route decides stands before the version gate has confirmed it, refusals included.
 */
import type { ConfigReading } from '../shared/config-entries/config-version.ts';
import { SealBrokenError } from '../shared/crypto/envelope.ts';
import { ApiError } from '../shared/errors.ts';
import { answerOnce } from './answer-once.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import type { Answer, Exchange } from './exchange.ts';
import { attemptOf, recordDenial } from './record-access.ts';
import type { Services } from './services.ts';
import type { RouteEntry } from './token-routes.ts';
import { StaleConfigError } from './version-gate.ts';

export type Route = (
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
) => Promise<Answer>;

/** A configuration that changes faster than a request can be decided is a fault, not a queue. */
const ATTEMPTS_MAX = 8;

/** Runs a route until it was decided on the tenant's current configuration. */
export async function serveExchange(
  exchange: Exchange,
  entry: RouteEntry,
  services: Services,
): Promise<Answer> {
  const finding = exchange.findApplication(services);
  const found = finding instanceof Promise ? await finding : finding;
  if (found === undefined) throw exchange.unauthorized();
  let application = found;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    let reading: ConfigReading;
    try {
      const answer = await answerOnce(exchange, application, entry, services);
      if (exchange.confirmed) return answer;
      throw new Error('a route answered without confirming its configuration');
    } catch (error) {
      if (error instanceof StaleConfigError) reading = error.reading;
      else if (exchange.confirmed || !comesOfConfiguration(error)) {
        await recordDenial(error, attemptOf(entry.operation, exchange), application, services);
        throw error;
      } else {
        // A refusal by what is only cached: it stands if the cache is current.
        reading = await services.gate.read(application.tenant_id);
        if (reading.config_version === application.config_version) {
          exchange.confirm(application, reading);
          await recordDenial(error, attemptOf(entry.operation, exchange), application, services);
          throw error;
        }
      }
    }
    const refreshed = await services.applications.refresh(application, reading.config_version);
    if (refreshed === undefined) throw exchange.unauthorized();
    application = refreshed;
  }
  throw new ApiError('unavailable', 'The configuration keeps changing; try again', {
    headers: { 'retry-after': '1' },
  });
}

/** What may only seem so: refusals, and that the keys of a tenant are gone, which is being deleted. */
function comesOfConfiguration(error: unknown): boolean {
  return error instanceof ApiError || error instanceof SealBrokenError;
}
