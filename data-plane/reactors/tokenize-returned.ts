/** Makes the tokens that a script asked for in what it returned: all of them, or none. */
import { ApiError, type FieldErrors, validationError } from '../../shared/errors.ts';
import { inTransaction } from '../../shared/postgres/pool.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CachedReactor } from '../config-cache/reactor-cache.ts';
import { applicationOf } from '../current-application.ts';
import type { AccessOrigin } from '../record-access.ts';
import type { Services } from '../services.ts';
import { type Transact, tokenizeBody } from '../tokenize-body.ts';
import { StaleConfigError } from '../version-gate.ts';
import { auditWrite } from '../write-transaction.ts';
import type { CallerRight } from './caller-right.ts';

/** A configuration that changes faster than tokens can be made is a fault, not a queue. */
const ATTEMPTS_MAX = 8;
const PATH = 'tokenize';

/**
 * The JSON text of `tokens`. Made with the rights of the reactor's application if it has one that may,
 * else with the caller's. Throws as `POST /tokenize`, members named below `tokenize`; 403 when neither
 * may. `transact`: for tokens that are not made in a transaction of their own.
 */
export async function tokenizeReturned(
  body: unknown,
  right: CallerRight,
  reactor: CachedReactor,
  services: Services,
  transact?: Transact,
): Promise<string> {
  const { origin } = right;
  const inOwn: Transact = (work) => inTransaction(services.pool, work);
  const toMake = { body, origin, transact: transact ?? inOwn };
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const caller = await right.current();
    const own = await applicationOf(reactor, caller.config_version, services);
    const asked = { ...toMake, caller_id: caller.application_id };
    try {
      return await tokenizeAsFirst(asked, own === undefined ? [caller] : [own, caller], services);
    } catch (error) {
      if (!(error instanceof StaleConfigError)) throw below(error);
    }
  }
  throw new ApiError('unavailable', 'The configuration keeps changing; try again', {
    headers: { 'retry-after': '1' },
  });
}

interface ToMake {
  readonly body: unknown;
  readonly caller_id: string;
  readonly origin: AccessOrigin;
  readonly transact: Transact;
}

/** As the first of the applications that may create what is asked for. */
async function tokenizeAsFirst(
  toMake: ToMake,
  [application, ...others]: readonly CachedApplication[],
  services: Services,
): Promise<string> {
  if (application === undefined) throw mayNot();
  try {
    return await tokenizeAs(toMake, application, services);
  } catch (error) {
    const isRefused = error instanceof ApiError && error.code === 'forbidden';
    if (!isRefused || others.length === 0) throw error;
    return tokenizeAsFirst(toMake, others, services);
  }
}

function tokenizeAs(
  { body, caller_id, origin, transact }: ToMake,
  application: CachedApplication,
  services: Services,
): Promise<string> {
  const { application_id, config_version, expires_at_ms } = application;
  const audited: Transact = (work) =>
    transact(async (client) => {
      const made = await work(client);
      const { tokens } = made;
      await auditWrite(client, { operation: 'create', tokens }, origin, application);
      // What the reactor's own right has shown, nobody can be asked for again but the reactor.
      return application_id === caller_id ? made : { ...made, rights: [] };
    });
  return tokenizeBody(
    body,
    {
      ...{ application, transact: audited },
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
