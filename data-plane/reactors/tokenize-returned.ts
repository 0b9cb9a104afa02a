/** Makes the tokens that a script asked for in what it returned: all of them, or none. */
import { ApiError, type FieldErrors, validationError } from '../../shared/errors.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CachedReactor } from '../config-cache/reactor-cache.ts';
import type { Services } from '../services.ts';
import { tokenizeBody } from '../tokenize-body.ts';
import { StaleConfigError } from '../version-gate.ts';
import type { CallerRight } from './caller-right.ts';

/** A configuration that changes faster than tokens can be made is a fault, not a queue. */
const ATTEMPTS_MAX = 8;
const PATH = 'tokenize';

/**
 * The JSON text of `tokens`. Made with the rights of the reactor's application if it has one that may,
 * else with the caller's. Throws as `POST /tokenize`, members named below `tokenize`; 403 when neither
 * may.
 */
export async function tokenizeReturned(
  body: unknown,
  right: CallerRight,
  reactor: CachedReactor,
  services: Services,
): Promise<string> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const caller = await right.current();
    const own = await applicationOf(reactor, caller, services);
    try {
      return await tokenizeAsFirst(body, own === undefined ? [caller] : [own, caller], services);
    } catch (error) {
      if (!(error instanceof StaleConfigError)) throw below(error);
    }
  }
  throw new ApiError('unavailable', 'The configuration keeps changing; try again', {
    headers: { 'retry-after': '1' },
  });
}

/** The reactor's application at the version the caller was confirmed at, if there is one. */
async function applicationOf(
  { tenant_id, application_id }: CachedReactor,
  { config_version }: CachedApplication,
  { applications }: Services,
): Promise<CachedApplication | undefined> {
  if (application_id === null) return undefined;
  const known = await applications.byId(tenant_id, application_id);
  if (known === undefined || known.config_version === config_version) return known;
  return applications.refresh(known, config_version);
}

/** As the first of the applications that may create what is asked for. */
async function tokenizeAsFirst(
  body: unknown,
  [application, ...others]: readonly CachedApplication[],
  services: Services,
): Promise<string> {
  if (application === undefined) throw mayNot();
  try {
    return await tokenizeAs(body, application, services);
  } catch (error) {
    const isRefused = error instanceof ApiError && error.code === 'forbidden';
    if (!isRefused || others.length === 0) throw error;
    return tokenizeAsFirst(body, others, services);
  }
}

function tokenizeAs(
  body: unknown,
  application: CachedApplication,
  services: Services,
): Promise<string> {
  const { config_version, expires_at_ms } = application;
  return tokenizeBody(
    body,
    {
      application,
      confirm: (reading) => {
        if (reading.config_version !== config_version) throw new StaleConfigError(reading);
        if (expires_at_ms !== null && expires_at_ms <= reading.now_ms) throw mayNot();
      },
    },
    services,
  );
}

function mayNot(): ApiError {
  return new ApiError('forbidden', 'Neither the reactor nor its caller may create these tokens');
}

/** The same error with its members named from the root of what the code returned. */
function below(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.errors === undefined) return error;
  const errors: FieldErrors = {};
  for (const [name, messages] of Object.entries(error.errors)) {
    errors[name === 'body' ? PATH : `${PATH}.${name}`] = messages;
  }
  return validationError(errors);
}
