/**
 * What the creations of tokens were answered that a commit is about to change: records of idempotency
 * keys that only name such a token get the answer itself. Nobody else changes these tokens meanwhile,
 * since the transaction holds them.
 */
import {
  type AnswerSealing,
  type NamingRecord,
  namingRecord,
  writeDownAnswers,
} from '../idempotency/named-token.ts';
import type { Queryable } from '../postgres/pool.ts';
import { NO_CVC_COLUMNS, TOKEN_COLUMNS, type TokenRow } from '../tokens/token-row.ts';
import type { TransactionKey } from './transaction-store.ts';

/** Tokens that are read at once: some 2 MiB, if each is as large as any that is named. */
const BATCH_TOKENS = 64;

/** After the id `$3`, the next live tokens that the transaction changes and that records name. */
export const READ_NAMED = {
  name: 'commit-read-named',
  text: `
    SELECT t.*, k.* FROM staged_tokens s
    CROSS JOIN LATERAL (
      SELECT ${TOKEN_COLUMNS}, ${NO_CVC_COLUMNS}, t.record_scope FROM tokens t
      WHERE t.tenant_id = $1 AND t.id = s.id AND t.record_scope IS NOT NULL LIMIT 1
    ) t
    CROSS JOIN ${namingRecord('t')} k
    WHERE s.tenant_id = $1 AND s.transaction_id = $2 AND s.id > $3
      AND s.operation IN ('update', 'delete', 'replace')
    ORDER BY s.id LIMIT ${BATCH_TOKENS}`,
};

/** Before the first live token is changed, in the transaction that changes them. */
export async function writeDownChanging(
  client: Queryable,
  { tenant_id, id }: Pick<TransactionKey, 'tenant_id' | 'id'>,
  sealing: AnswerSealing,
): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const values = [tenant_id, id, after];
    const read: { rows: (TokenRow & NamingRecord)[] } = await client.query({
      ...READ_NAMED,
      values,
    });
    const named = read.rows.map((row) => {
      const { scope, shows_mask } = row;
      return { row, scope, shows_mask };
    });
    await writeDownAnswers(client, tenant_id, named, sealing);
    after = read.rows[BATCH_TOKENS - 1]?.id;
  }
}
