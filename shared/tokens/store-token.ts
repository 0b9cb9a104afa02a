/**
 * Stores what a creation asks for under an id of its own: the id given, a free alias, or a UUID. The
 * insert itself is the caller's: batched with others, or inside a transaction.
 */
import { randomUUID } from 'node:crypto';
import type { DatabaseClock } from '../clock.ts';
import type { ConfigReading } from '../config-entries/config-version.ts';
import type { TenantKeys } from '../crypto/data-keys.ts';
import { ApiError, fieldError } from '../errors.ts';
import { inProgress } from '../idempotency/claim.ts';
import { AnsweredMeanwhileError } from '../idempotency/record-store.ts';
import { checkTokenId, type TokenCreation } from './create-token.ts';
import { evaluateTokenId } from './evaluate.ts';
import { sealCvc } from './seal-cvc.ts';
import { type EncodedToken, encodeDraft } from './token-draft.ts';
import { type TokenRow, writtenRow } from './token-row.ts';
import type { InsertResult, TokenInsert } from './token-writer.ts';

/** Aliases tried before a UUID is assigned instead (facts 5.3). */
const ALIASES_MAX = 16;
/** The first estimate of the database's clock may be off; the answer brings the right time. */
const CLOCK_CORRECTIONS_MAX = 3;

export interface CreationContext {
  tenant_id: string;
  application_id: string;
  config_version: string;
  keys: TenantKeys;
  clock: DatabaseClock;
  insert(insert: TokenInsert): Promise<InsertResult>;
  /** Frees the id of a token whose time is over, or of an ended transaction. */
  freeId(id: string): Promise<boolean>;
  /** Throws when the configuration read along is not the one decided on. */
  confirm(reading: ConfigReading): void;
}

export interface StoredToken {
  row: TokenRow;
  token: EncodedToken;
}

/** Throws 409 when the id given is taken, 400 for what only evaluation or the clock can tell. */
export async function storeToken(
  creation: TokenCreation,
  context: CreationContext,
): Promise<StoredToken> {
  const ids = candidateIds(creation);
  let corrections = 0;
  let id = ids.next();
  for (;;) {
    const token = encodeDraft(creation.draft, id, context.tenant_id, context.keys);
    const result = await context.insert(insertOf(creation, token, context));
    context.clock.observe(result.now_ms);
    context.confirm(result);
    if (result.problem === null) return { token, row: createdRow(token, result, context) };
    if (result.problem === 'in_progress') throw inProgress();
    if (result.problem === 'answered') throw new AnsweredMeanwhileError();
    if (result.problem === 'stale') throw new Error('a stale configuration was confirmed');
    if (result.problem === 'past') throw fieldError('expires_at', 'It must be in the future');
    if (result.problem === 'clock') {
      corrections += 1;
      if (corrections > CLOCK_CORRECTIONS_MAX) throw new Error('the clocks drift apart');
    } else if (!(await context.freeId(id))) {
      id = ids.next();
    }
  }
}

function insertOf(
  creation: TokenCreation,
  token: EncodedToken,
  { tenant_id, config_version, application_id, keys, clock }: CreationContext,
): TokenInsert {
  const { cvc } = creation;
  return {
    tenant_id,
    config_version,
    token,
    chosen: creation.id !== undefined,
    cvc:
      cvc === undefined ? undefined : sealCvc(keys.current, tenant_id, token.id, cvc, clock.now()),
    created_by: application_id,
  };
}

function createdRow(
  token: EncodedToken,
  { created_at_ms }: InsertResult,
  { application_id }: CreationContext,
): TokenRow {
  return writtenRow(token, {
    created_by: application_id,
    created_at_ms: created_at_ms ?? 0,
    modified_by: null,
    modified_at_ms: null,
  });
}

/** Ids to try, in order: each `next` means that the one before is taken. */
function candidateIds({ id, draft }: TokenCreation): { next(): string } {
  let tries = 0;
  let previous: string | undefined;
  return {
    next() {
      tries += 1;
      if (id === undefined) return randomUUID();
      if ('literal' in id) {
        if (tries > 1) throw new ApiError('conflict', 'A token with this id exists');
        return id.literal;
      }
      const alias = tries > ALIASES_MAX ? undefined : evaluateTokenId(id.expression, draft.data);
      // The same again: the expression is not random, and will not find another.
      if (alias === undefined || alias === previous) return randomUUID();
      checkTokenId(alias);
      previous = alias;
      return alias;
    },
  };
}
