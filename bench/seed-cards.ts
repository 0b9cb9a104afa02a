/**
 * Fills a vault through the product's own modules: each card is validated, evaluated, sealed for its
 * own id and stored by the statement that serves `POST /tokens`, only in bigger batches.
 */
import { randomUUID } from 'node:crypto';
import { readConfigVersions } from '../shared/config-entries/config-version.ts';
import { createDataKeys } from '../shared/crypto/data-keys.ts';
import { readCreation } from '../shared/tokens/create-token.ts';
import { foldCounts } from '../shared/tokens/fold-counts.ts';
import { encodeDraft } from '../shared/tokens/token-draft.ts';
import { insertTokens, type TokenInsert } from '../shared/tokens/token-writer.ts';
import { newCard } from './cards.ts';
import { runSql, type Vault } from './vault.ts';

/** Rows of one statement: some 100 ms, far below the pool's statement timeout. */
const BATCH_ROWS = 1_000;
/** Statements at once: one is sealed while the other is written. */
const LANES = 2;

/** Stores `count` cards and returns their ids. Leaves the table as autovacuum would. */
export async function seedCards(vault: Vault, count: number): Promise<string[]> {
  const { pool, installation, tenantId } = vault;
  const keys = await createDataKeys(pool, installation).forTenant(tenantId);
  const [reading] = await readConfigVersions(pool, [tenantId]);
  const config_version = reading?.config_version ?? '';
  const ids = Array.from({ length: count }, () => randomUUID() as string);

  const insertOf = (id: string): TokenInsert => ({
    tenant_id: tenantId,
    config_version,
    token: encodeDraft(readCreation(newCard(), {}).draft, id, tenantId, keys),
    cvc: undefined,
    created_by: vault.applicationId,
  });
  let next = 0;
  async function lane(): Promise<void> {
    while (next < count) {
      const batch = ids.slice(next, next + BATCH_ROWS);
      next += batch.length;
      const results = await insertTokens(pool, batch.map(insertOf));
      if (results.some(({ problem }) => problem !== null)) throw new Error('a card is not stored');
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane));
  while ((await foldCounts(pool)) > 0);
  await runSql(vault.databaseUrl, 'VACUUM ANALYZE');
  await runSql(vault.adminUrl, 'CHECKPOINT');
  return ids;
}
