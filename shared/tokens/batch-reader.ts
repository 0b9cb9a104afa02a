/**
 * Reads tokens by id, many requests in one statement, together with their tenants' configuration
 * version and the database's clock: one round trip answers what the token is, whether what we know
 * of the tenant is still true, and what time it is (design sections 4 and 5).
 */
import { createBatcher, type ListBatcher } from '../postgres/batcher.ts';
import { isDatabaseUnavailable, retryRead } from '../postgres/database-error.ts';
import type { Queryable } from '../postgres/pool.ts';
import {
  readRows,
  SEALED_TOKENS,
  type TokenKey,
  type TokenRead,
  type TokenReading,
  WHOLE_TOKENS,
} from './read-rows.ts';
import type { SealedRow, TokenRow } from './token-row.ts';

export type BatchReader<Row = TokenRow> = ListBatcher<TokenKey, TokenRead<Row>>;

/** Tokens as they are shown, and as they are put in: neither waits in a statement of the other. */
export interface TokenReaders {
  readonly whole: BatchReader;
  readonly sealed: BatchReader<SealedRow>;
}

export function createTokenReaders(db: Queryable, onBatch?: (rows: number) => void): TokenReaders {
  return {
    whole: createBatchReader(db, WHOLE_TOKENS, onBatch),
    sealed: createBatchReader(db, SEALED_TOKENS, onBatch),
  };
}

/** Large tokens are read alone, two at a time, so that nobody's small one waits for them. */
function createBatchReader<Row, Values extends unknown[]>(
  db: Queryable,
  reading: TokenReading<Row, Values>,
  onBatch: ((rows: number) => void) | undefined,
): BatchReader<Row> {
  const common = {
    isOutage: isDatabaseUnavailable,
    ...(onBatch === undefined ? {} : { onBatch }),
  };
  const alone: BatchReader<Row> = createBatcher({
    ...common,
    identity: () => '',
    async run(keys) {
      const [read] = await retryRead(() => readRows(db, keys, reading));
      if (read === undefined) throw new Error('a token that was read alone is not there');
      return [read];
    },
  });
  return createBatcher({
    ...common,
    async run(keys) {
      const reads = await retryRead(() => readRows(db, keys, reading));
      return keys.map((key, index) => reads[index] ?? alone.submit(key));
    },
  });
}
