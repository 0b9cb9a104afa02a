/**
 * Creates whose record names the token instead of holding the answer: the token's row says what was
 * answered for as long as it is as it was created. Whoever changes or deletes the token writes the
 * answer down first, in the same transaction.
 */
import type { TenantKeys } from '../crypto/data-keys.ts';
import { SealBrokenError } from '../crypto/envelope.ts';
import type { Queryable } from '../postgres/pool.ts';
import { createdAnswer, storedJson } from '../tokens/created-token.ts';
import type { TokenOpener } from '../tokens/reveal.ts';
import type { TokenPayload } from '../tokens/sealed-payload.ts';
import type { EncodedToken } from '../tokens/token-draft.ts';
import type { TokenRow } from '../tokens/token-row.ts';
import { type KeptAnswer, sealAnswer } from './kept-answer.ts';
import { SHARED_BYTES_MAX } from './record-store.ts';

/** The record that names a token. */
export interface NamingRecord {
  readonly scope: string;
  /** Whether its answer shows the token's mask. */
  readonly shows_mask: boolean;
}

/** A token that a record names, as it was created. */
export interface NamedToken extends NamingRecord {
  readonly row: TokenRow;
}

/**
 * Whether a record may name the new token. Not one that expires: nobody would be there to write its
 * answer down. Nor a large one, by what is sealed or by what is not: its answer, without its data, is
 * mostly small, and who replays it or changes many of them would have to read them all.
 */
export function mayBeNamed(token: EncodedToken): boolean {
  if (token.expires_at_ms !== null) return false;
  const clear = Buffer.byteLength(token.metadata ?? '') + Buffer.byteLength(token.search_indexes);
  return token.sealed.length + clear <= SHARED_BYTES_MAX;
}

/**
 * Of the tenant `$1`, the record that still names the row `token`, which has `id` and `record_scope`. A
 * later record of the same key names another token. One that is too old to count is as good as any: no
 * reader, by however late a clock, may find it naming what has changed.
 */
export const namingRecord = (token: string): string => `
  LATERAL (
    SELECT i.scope, i.shows_mask FROM idempotency_records i
    WHERE i.tenant_id = $1 AND i.scope = ${token}.record_scope AND i.token_id = ${token}.id
    LIMIT 1
  )`;

/** What the creation was answered, and what a replay of it needs. */
export function creationAnswer(
  tenantId: string,
  row: TokenRow,
  payload: TokenPayload,
  showsMask: boolean,
): KeptAnswer & { body: string } {
  const transform = showsMask ? 'mask' : 'redact';
  const body = storedJson({ row, token: { payload } }, tenantId, transform);
  const right = { permission: 'token:create', container: row.container, transform } as const;
  return { ...createdAnswer(row, body), rights: [right] };
}

export interface AnswerSealing {
  /** The tenant's, loaded before the transaction: whoever has a connection must not wait for another. */
  readonly keys: TenantKeys;
  readonly opener: Pick<TokenOpener, 'open'>;
}

/**
 * Keeps the answers themselves, before the tokens change in the caller's transaction. The records stay
 * as old as they are.
 */
export async function writeDownAnswers(
  client: Queryable,
  tenant_id: string,
  named: readonly NamedToken[],
  { keys, opener }: AnswerSealing,
): Promise<void> {
  if (named.length === 0) return;
  const [scopes, ids, answers]: [string[], string[], Buffer[]] = [[], [], []];
  for (const { row, scope, shows_mask } of named) {
    const payload = await payloadOf(tenant_id, row, opener);
    if (payload === undefined) continue;
    const answer = creationAnswer(tenant_id, row, payload, shows_mask);
    scopes.push(scope);
    ids.push(row.id);
    answers.push(sealAnswer({ tenant_id, scope, keys }, answer));
  }
  await client.query({ ...WRITE_DOWN, values: [tenant_id, scopes, ids, answers] });
}

/** `undefined` when the seal is broken: such a token may go, and its record names nothing then. */
async function payloadOf(
  tenantId: string,
  row: TokenRow,
  opener: AnswerSealing['opener'],
): Promise<TokenPayload | undefined> {
  try {
    return await opener.open(tenantId, row);
  } catch (error) {
    if (error instanceof SealBrokenError) return undefined;
    throw error;
  }
}

/** Without a join, whose plan could come to walk the table. */
export const WRITE_DOWN = {
  name: 'write-down-answers',
  text: `
    UPDATE idempotency_records i SET token_id = NULL, shows_mask = NULL,
      sealed = ($4::bytea[])[array_position($2::uuid[], i.scope)]
    WHERE i.tenant_id = $1 AND i.scope = ANY ($2::uuid[])
      AND i.token_id = ($3::text[])[array_position($2::uuid[], i.scope)]`,
};
