/** New tokens of an open transaction: where they go, and what the answers of the database mean. */
import type { ConfigReading } from '../config-entries/config-version.ts';
import type { TokenPlace } from '../tokens/store-tokens.ts';
import type { InsertResult } from '../tokens/token-writer.ts';
import { findVisibleDuplicates } from './find-duplicates.ts';
import { type StageResult, stageCreates } from './stage-creates.ts';
import {
  type TransactionKey,
  type TransactionProblem,
  takeFromEnded,
} from './transaction-store.ts';

/** Ends a request whose configuration is current, but whose transaction is not open. */
export type Refuse = (reading: ConfigReading, problem: TransactionProblem) => never;

/** The result as of an insert of a live token. An id that another transaction holds is a taken one. */
export function asInsertResult(result: StageResult, refuse: Refuse): InsertResult {
  const { problem } = result;
  if (problem === 'unknown' || problem === 'ended' || problem === 'full') {
    return refuse(result, problem);
  }
  return { ...result, problem: problem === 'locked' ? 'conflict' : problem };
}

/** Inside the caller's Postgres transaction, which holds the transaction. */
export function stagedPlace(transaction: TransactionKey, refuse: Refuse): TokenPlace {
  return {
    findDuplicates: (client, _tenantId, fingerprints) =>
      findVisibleDuplicates(client, transaction, fingerprints),
    insert: async (client, inserts) => {
      const creates = inserts.map((insert) => ({ ...insert, transaction_id: transaction.id }));
      const results = await stageCreates(client, creates);
      return results.map((result) => asInsertResult(result, refuse));
    },
    freeId: takeFromEnded,
  };
}
