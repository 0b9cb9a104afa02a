/**
 * As much as a transaction may hold, with as many index terms as its tokens may have: a commit that came
 * to the time limit of a statement could never be done.
 */
import { expect } from 'chai';
import pg from 'pg';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { METADATA_KEYS_MAX } from '../../shared/tokens/metadata.ts';
import { applyStaged } from '../../shared/transactions/commit-transaction.ts';
import { TRANSACTION_TOKENS_MAX } from '../../shared/transactions/transaction-store.ts';
import { startVault, type Vault } from '../api/tokens/vault.ts';
import { begin, type TransactionClient } from '../api/transactions/transaction-client.ts';
import { answerSealing } from '../support/answer-sealing.ts';
import { inParallel } from '../support/in-parallel.ts';

const PER_REQUEST = 100;
const INDEXES = 10;
/** What a statement does with that many takes a fifth of its time limit. */
const PER_STATEMENT = 250;
const TERMS = TRANSACTION_TOKENS_MAX * (METADATA_KEYS_MAX + INDEXES);

/** A token with a term for each of its metadata and indexes, none of them another's. */
const token = (round: string, n: number) => ({
  type: 'token',
  data: `${round} ${n}`,
  metadata: Object.fromEntries(
    Array.from({ length: METADATA_KEYS_MAX }, (_, key) => [`key_${key}`, `${round} ${n} ${key}`]),
  ),
  search_indexes: Array.from({ length: INDEXES }, (_, key) => `{{ data | append: " ${key}" }}`),
});

describe('a transaction at its bound', function () {
  this.timeout(120_000);
  let vault: Vault;
  let client: pg.Client;
  let ids: string[];
  before(async () => {
    vault = await startVault();
    client = new pg.Client({ connectionString: vault.control.database.adminConnectionString });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await vault?.stop();
  });

  const count = async (what: string): Promise<number> =>
    (await client.query(`SELECT count(*)::int4 AS n FROM ${what}`)).rows[0].n;

  /** The most tokens that one statement of its commit has changed; nothing is committed. */
  async function mostPerStatement(id: string): Promise<number> {
    let most = 0;
    const query = async (statement: pg.QueryConfig) => {
      const result = await client.query(statement);
      // What is left of the staged rows has no terms, and goes in one.
      if (statement.name !== 'clear-staged') most = Math.max(most, result.rowCount ?? 0);
      return result;
    };
    await client.query('BEGIN');
    const key = { tenant_id: vault.control.tenant.id, id };
    const db = { query: query as Queryable['query'] };
    await applyStaged(db, key, () => undefined, await answerSealing(vault.control));
    await client.query('ROLLBACK');
    return most;
  }

  async function commitWhole(transaction: TransactionClient): Promise<void> {
    expect(await count(`staged_tokens WHERE transaction_id = '${transaction.id}'`)).to.equal(
      TRANSACTION_TOKENS_MAX,
    );
    expect(await mostPerStatement(transaction.id)).to.equal(PER_STATEMENT);
    const { status, text } = await transaction.commit();
    expect(status, text).to.equal(200);
    expect(await count('staged_tokens')).to.equal(0);
    expect(await count('token_locks')).to.equal(0);
    expect(await count('token_terms')).to.equal(TERMS);
  }

  it('creates its tokens, so many in a statement', async () => {
    const transaction = await begin(vault.url, vault.key);
    for (let start = 0; start < TRANSACTION_TOKENS_MAX; start += PER_REQUEST) {
      const json = Array.from({ length: PER_REQUEST }, (_, n) => token('new', start + n));
      const { status, text } = await transaction.send('POST /tokenize', { json });
      expect(status, text.slice(0, 500)).to.equal(200);
    }
    await commitWhole(transaction);
    const { rows } = await client.query<{ id: string }>('SELECT id FROM tokens');
    ids = rows.map(({ id }) => id);
    expect(ids).to.have.length(TRANSACTION_TOKENS_MAX);
  });

  it('changes them, with all of their terms', async () => {
    const transaction = await begin(vault.url, vault.key);
    await inParallel(ids, async (id, n) => {
      const { type: _, ...patch } = token('changed', n);
      const { status, text } = await transaction.patch(id, patch);
      expect(status, text.slice(0, 500)).to.equal(200);
    });
    await commitWhole(transaction);
    const found = await vault.tokens.list('?metadata.key_49=changed%207%2049');
    expect(found.body.data).to.have.length(1);
  });
});
