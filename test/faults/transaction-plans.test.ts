/**
 * The plans of statements of transactions, made while next to nothing is staged and kept for good: live
 * tokens are found by their keys, never by walking what a tenant has.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import pg from 'pg';
import { createLogger } from '../../shared/observability/logger.ts';
import { createPool, type Pool, type Queryable } from '../../shared/postgres/pool.ts';
import { applyStaged } from '../../shared/transactions/commit-transaction.ts';
import { findVisibleDuplicates } from '../../shared/transactions/find-duplicates.ts';
import { openTransactions } from '../../shared/transactions/open-transactions.ts';
import { STAGE_CREATES } from '../../shared/transactions/stage-creates.ts';
import { holdToken, lockVisible, stageDeletion } from '../../shared/transactions/staged-tokens.ts';
import * as store from '../../shared/transactions/transaction-store.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

const TENANT = randomUUID();
const TRANSACTION = { tenant_id: TENANT, id: randomUUID(), application_id: randomUUID() };

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: PlanNode[];
}

/** Tables with much in them, each with the index by which single rows are found. */
const LARGE: Record<string, RegExp> = {
  tokens: /^tokens_(?:pkey|fingerprint)$/,
  token_terms: /^token_terms_pkey$/,
  token_cvcs: /^token_cvcs_pkey$/,
};

const seed = (tokens: number): string => `
  INSERT INTO tokens (tenant_id, id, type, container, fingerprint, sealed, created_by, created_at,
      expires_at)
    SELECT '${TENANT}', 'token-' || g, 'card', '/pci/high/', md5(g::text), '', gen_random_uuid(),
      now() - g * interval '1 s', CASE WHEN g % 10 = 0 THEN now() + g * interval '1 s' END
    FROM generate_series(1, ${tokens}) AS g;
  INSERT INTO token_terms (tenant_id, token_id, hash)
    SELECT tenant_id, id, decode(md5(id), 'hex') FROM tokens;
  INSERT INTO token_cvcs (tenant_id, token_id, sealed, due_at)
    SELECT tenant_id, id, '', now() + interval '1 hour' FROM tokens;
  INSERT INTO staged_tokens (tenant_id, transaction_id, id, operation, previous_container, type,
      container, sealed, terms, created_by, created_at)
    SELECT tenant_id, '${TRANSACTION.id}', id, (ARRAY['update', 'delete', 'replace'])[1 + n::int % 3],
      container, type, container, '', ARRAY['\\x00'::bytea], created_by, created_at
    FROM (SELECT *, row_number() OVER () AS n FROM tokens LIMIT 6) t;`;

/** What of the product sends statements, as it sends them. */
const CALLS: Record<string, (db: Queryable) => Promise<unknown>> = {
  'open transactions': (db) =>
    openTransactions(db, [{ ...TRANSACTION, config_version: randomUUID() }]),
  'hold a transaction': (db) => store.holdTransaction(db, TRANSACTION),
  'end a transaction': (db) => store.endTransaction(db, TRANSACTION, 'committed'),
  'take a token from an ended one': (db) => store.takeFromEnded(db, TENANT, 'token-40'),
  'lock a token': (db) => lockVisible(db, TRANSACTION, 'token-40'),
  'hold a token': (db) => holdToken(db, TRANSACTION, 'token-40', null),
  'stage a deletion': (db) => stageDeletion(db, TRANSACTION, 'token-40'),
  'find duplicates': (db) => findVisibleDuplicates(db, TRANSACTION, new Set(['x', 'y'])),
  'commit what is staged': (db) => applyStaged(db, TRANSACTION, () => undefined),
  'clear what is staged': (db) => store.clearStaged(db, TRANSACTION),
};

function* nodesOf(plan: PlanNode): Generator<PlanNode> {
  yield plan;
  for (const child of plan.Plans ?? []) yield* nodesOf(child);
}

describe('the generic plans of transactions', () => {
  let database: TestDatabase;
  let admin: pg.Client;
  let pool: Pool;

  before(async () => {
    database = await createTestDatabase();
    admin = new pg.Client({ connectionString: database.adminConnectionString });
    await admin.connect();
    pool = createPool({
      ...{ connectionString: database.connectionString, max: 1, applicationName: 'test' },
      log: createLogger('test', 'silent'),
    });
  });
  after(async () => {
    await admin.end();
    await pool.end();
    await database.drop();
  });

  async function expectProbes(text: string): Promise<void> {
    const { rows } = await pool.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
    const nodes = [...nodesOf(rows[0]['QUERY PLAN'][0].Plan as PlanNode)];
    for (const node of nodes) {
      const table = node['Relation Name'] ?? '';
      const isWrite = node['Node Type'] === 'ModifyTable';
      const index = LARGE[table];
      const where = `${table} in ${text.trim().slice(0, 80)}`;
      expect(node['Node Type'], where).not.to.equal('Seq Scan');
      if (index === undefined || isWrite) continue;
      expect(node['Index Name'], where).to.match(index);
      expect(node['Index Cond'], where).to.match(/\b(?:id|token_id|fingerprint) =/);
    }
  }

  async function statementsOf(run: (db: Queryable) => Promise<unknown>): Promise<string[]> {
    const texts: string[] = [];
    const query = ((statement: pg.QueryConfig) => {
      texts.push(statement.text);
      return admin.query(statement);
    }) as Queryable['query'];
    await run({ query });
    return texts;
  }

  for (const tokens of [60, 20_000]) {
    describe(`on ${tokens} tokens`, () => {
      before(async function () {
        this.timeout(60_000);
        await admin.query('TRUNCATE tokens, token_terms, token_cvcs, staged_tokens, token_locks');
        await admin.query(seed(tokens));
        await admin.query('ANALYZE tokens, token_terms, token_cvcs');
      });
      it('find tokens by their keys to stage creates', () => expectProbes(STAGE_CREATES.text));
      for (const [name, run] of Object.entries(CALLS)) {
        it(`find tokens by their keys to ${name}`, async () => {
          const texts = await statementsOf(run);
          expect(texts).not.to.have.lengthOf(0);
          for (const text of texts) await expectProbes(text);
        });
      }
      it('are those of a commit that did something', async () => {
        const { rows } = await admin.query('SELECT count(*)::int4 AS n FROM staged_tokens');
        expect(rows[0]?.n).to.equal(0);
      });
    });
  }
});
