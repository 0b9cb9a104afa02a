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
import type { UsedRight } from '../shared/idempotency/kept-answer.ts';
import { isCrossed } from '../shared/postgres/database-error.ts';
import { inTransaction, type PoolClient } from '../shared/postgres/pool.ts';
import { readCreation } from '../shared/tokens/create-token.ts';
import { storedJson } from '../shared/tokens/created-token.ts';
import { holdsCvc } from '../shared/tokens/detect-cvc.ts';
import {
  type NewToken,
  type StoreOutcome,
  storeTokens,
  type TokenPlace,
} from '../shared/tokens/store-tokens.ts';
import { fingerprintOfDraft } from '../shared/tokens/token-draft.ts';
import { withMember } from '../shared/tokens/token-json.ts';
import { planTokenize, type TokenRequest } from '../shared/tokens/tokenize.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import { duplicateAnswer, duplicateRights } from './routes/deduplicate.ts';
import { requireTransform, withoutReveal } from './routes/permit.ts';
import type { Services } from './services.ts';
import type { WrittenToken } from './write-transaction.ts';

const validate = compileValidator(createToken.body);

/** How long work that crosses others is begun again. */
const CROSSED_MS_MAX = 3_000;

export interface TokenizeCaller {
  application: CachedApplication;
  /** Throws when the configuration read along is not the one decided on. */
  confirm(reading: ConfigReading): void;
  /** Unless they are made in a transaction of their own. */
  transact?: Transact;
  /** Where the tokens go, unless they are live at once; then a commit counts them. */
  place?: TokenPlace;
}

export interface Tokenized {
  /** JSON text of the body with tokens in place of what it asked for. */
  readonly text: string;
  readonly tokens: readonly WrittenToken[];
  /** What it takes to be shown the text again. */
  readonly rights: readonly UsedRight[];
}

/** Runs the work in a transaction, with whatever else is to be committed with the tokens. */
export type Transact = (work: (client: PoolClient) => Promise<Tokenized>) => Promise<Tokenized>;

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
  const { transact = (work) => inTransaction(services.pool, work) } = caller;
  const plan = planTokenize(body);
  if (plan.requests.length === 0) {
    confirm(await services.gate.read(tenant_id));
    return (await transact(async () => ({ text: plan.render([]), tokens: [], rights: [] }))).text;
  }
  const keys =
    services.dataKeys.cached(tenant_id) ?? (await services.dataKeys.forTenant(tenant_id));
  const pending = prepare(plan.requests, application, keys);
  const { clock } = services;
  let outcomes: StoreOutcome[] = [];
  const { text } = await againWhenCrossed(transact, async (client, onLaterIds) => {
    const context = {
      ...{ tenant_id, application_id, config_version, keys, clock, confirm },
      onLaterIds,
    };
    outcomes = allStored(await storeTokens(client, pending, context, caller.place), pending);
    const answers: string[] = [];
    for (const [index, outcome] of outcomes.entries()) {
      answers.push(await answerOf(pending[index] as Pending, outcome, application, services));
    }
    const rights = usedRights(pending, outcomes, application);
    return { text: plan.render(answers), tokens: writtenTokens(pending, outcomes), rights };
  });
  if (caller.place === undefined) count(pending, outcomes, services);
  return text;
}

/**
 * Work that has tried other ids than its first may have met with others that wait for it in turn. It is
 * undone then, to the last of it, and done again from the start, where ids are taken in order.
 */
async function againWhenCrossed(
  transact: Transact,
  work: (client: PoolClient, onLaterIds: () => void) => Promise<Tokenized>,
): Promise<Tokenized> {
  const until = performance.now() + CROSSED_MS_MAX;
  for (;;) {
    let isLater = false;
    try {
      return await transact((client) =>
        work(client, () => {
          isLater = true;
        }),
      );
    } catch (error) {
      if (!isLater || !isCrossed(error) || performance.now() > until) throw error;
    }
  }
}

function writtenTokens(
  pending: readonly Pending[],
  outcomes: readonly StoreOutcome[],
): WrittenToken[] {
  return outcomes.map((outcome, index) => {
    if ('duplicate' in outcome) {
      const { id, container } = outcome.duplicate;
      return { id, container, transform: 'redact', duplicate: true };
    }
    const { id, container } = outcome.stored.row;
    return { id, container, transform: (pending[index] as Pending).transform };
  });
}

function usedRights(
  pending: readonly Pending[],
  outcomes: readonly StoreOutcome[],
  application: CachedApplication,
): UsedRight[] {
  const rights = new Map<string, UsedRight>();
  const add = (right: UsedRight): void => {
    rights.set(`${right.permission} ${right.transform} ${right.container}`, right);
  };
  for (const [index, outcome] of outcomes.entries()) {
    const { request, creation, transform } = pending[index] as Pending;
    const { container } = creation.draft;
    // A value is replaced by an id, which shows nothing; so is a token that was there already.
    const shown = request.kind === 'value' || 'duplicate' in outcome ? 'redact' : transform;
    add({ permission: 'token:create', container, transform: withoutReveal(shown) });
    if (request.kind === 'value' || 'stored' in outcome) continue;
    for (const right of duplicateRights(outcome.duplicate, application)) add(right);
  }
  return [...rights.values()];
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
