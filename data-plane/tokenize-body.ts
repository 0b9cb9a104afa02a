/**
 * Creates the tokens that any JSON asks for, all of them or none, as one application: the work of
 * `POST /tokenize`, and of what reactors hand back to be tokenized. Never answers clear data.
 */
import type { Transform } from '../shared/access/access-rules.ts';
import { createToken } from '../shared/api/tokens.ts';
import { compileValidator } from '../shared/api/validate.ts';
import type { ConfigReading } from '../shared/config-entries/config-version.ts';
import type { TenantKeys } from '../shared/crypto/data-keys.ts';
import { ApiError, type FieldErrors, validationError } from '../shared/errors.ts';
import { inTransaction } from '../shared/postgres/pool.ts';
import { readCreation } from '../shared/tokens/create-token.ts';
import { holdsCvc } from '../shared/tokens/detect-cvc.ts';
import { type NewToken, type StoreOutcome, storeTokens } from '../shared/tokens/store-tokens.ts';
import { fingerprintOfDraft } from '../shared/tokens/token-draft.ts';
import { withMember } from '../shared/tokens/token-json.ts';
import { planTokenize, type TokenRequest } from '../shared/tokens/tokenize.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import { storedJson } from './routes/create-token.ts';
import { duplicateAnswer } from './routes/deduplicate.ts';
import { requireTransform } from './routes/permit.ts';
import type { Services } from './services.ts';

const validate = compileValidator(createToken.body);

export interface TokenizeCaller {
  application: CachedApplication;
  /** Throws when the configuration read along is not the one decided on. */
  confirm(reading: ConfigReading): void;
}

interface Pending extends NewToken {
  request: TokenRequest;
  transform: Transform;
}

/**
 * The JSON text of the body with tokens in place of what it asked for (facts 7.2). The caller was
 * confirmed when it returns. Throws 400 naming the member, 403 for a container in which the
 * application may not create, 409 for an id that is taken; nothing is stored then.
 */
export async function tokenizeBody(
  body: unknown,
  caller: TokenizeCaller,
  services: Services,
): Promise<string> {
  const { application, confirm } = caller;
  const { tenant_id, application_id, config_version } = application;
  const plan = planTokenize(body);
  if (plan.requests.length === 0) {
    confirm(await services.gate.read(tenant_id));
    return plan.render([]);
  }
  const keys =
    services.dataKeys.cached(tenant_id) ?? (await services.dataKeys.forTenant(tenant_id));
  const pending = prepare(plan.requests, application, keys);
  const { clock } = services;
  const outcomes = await inTransaction(services.pool, async (client) => {
    const context = { tenant_id, application_id, config_version, keys, clock, confirm };
    return allStored(await storeTokens(client, pending, context), pending);
  });
  count(pending, outcomes, services);
  const answers: string[] = [];
  for (const [index, outcome] of outcomes.entries()) {
    answers.push(await answerOf(pending[index] as Pending, outcome, application, services));
  }
  return plan.render(answers);
}

/** Validates and permits every token before the first is stored. */
function prepare(
  requests: readonly TokenRequest[],
  application: CachedApplication,
  keys: TenantKeys,
): Pending[] {
  const read = requests.map((request) => {
    try {
      return { request, creation: readCreation(validate(request.body), application.settings) };
    } catch (error) {
      throw below(request, error);
    }
  });
  const deduplicates = read.some(({ creation }) => creation.deduplicate);
  return read.map(({ request, creation }) => {
    const transform = requireTransform(application, 'token:create', creation.draft.container);
    try {
      const fingerprint = deduplicates ? fingerprintOfDraft(creation.draft, keys) : undefined;
      return { request, creation, transform, fingerprint };
    } catch (error) {
      throw below(request, error);
    }
  });
}

/** Throws what the first failed token failed with, so that the transaction is rolled back. */
function allStored(
  settled: readonly PromiseSettledResult<StoreOutcome>[],
  pending: readonly Pending[],
): StoreOutcome[] {
  return settled.map((result, index) => {
    if (result.status === 'fulfilled') return result.value;
    throw below((pending[index] as Pending).request, result.reason);
  });
}

/** The same error with its members named from the root of the request. */
function below({ path, kind }: TokenRequest, error: unknown): unknown {
  if (!(error instanceof ApiError) || error.errors === undefined) return error;
  const errors: FieldErrors = {};
  for (const [name, messages] of Object.entries(error.errors)) {
    if (kind === 'value') errors[path === '' ? 'body' : path] = messages;
    else errors[path === '' ? name : `${path}.${name}`] = messages;
  }
  return validationError(errors);
}

async function answerOf(
  { request, creation, transform }: Pending,
  outcome: StoreOutcome,
  application: CachedApplication,
  services: Services,
): Promise<string> {
  const row = 'stored' in outcome ? outcome.stored.row : outcome.duplicate;
  if (request.kind === 'value') return JSON.stringify(row.id);
  if ('duplicate' in outcome) return duplicateAnswer(row, application, services);
  const json = storedJson(outcome.stored, application.tenant_id, transform);
  return creation.deduplicate ? withMember(json, '_extras', '{"deduplicated":false}') : json;
}

function count(
  pending: readonly Pending[],
  outcomes: readonly StoreOutcome[],
  { countTokens, countHeldCvc }: Services,
): void {
  const created = outcomes.filter((outcome) => 'stored' in outcome).length;
  countTokens('create', created);
  if (created < outcomes.length) countTokens('deduplicate', outcomes.length - created);
  for (const { creation } of pending) {
    if (creation.draft.type === 'token' && holdsCvc(creation.draft.data)) countHeldCvc();
  }
}
