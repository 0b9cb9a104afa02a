/**
 * The plans of statements of transactions, made while next to nothing is staged and kept for good: live
 * tokens are found by their keys, never by walking what a tenant has.
 */
import { createSecretKey, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { type AnswerSealing, WRITE_DOWN } from '../../shared/idempotency/named-token.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { READ_NAMED } from '../../shared/transactions/commit-answers.ts';
import { applyStaged } from '../../shared/transactions/commit-transaction.ts';
import { findVisibleDuplicates } from '../../shared/transactions/find-duplicates.ts';
import { openTransactions } from '../../shared/transactions/open-transactions.ts';
import { STAGE_CREATES } from '../../shared/transactions/stage-creates.ts';
import { holdToken, lockVisible, stageDeletion } from '../../shared/transactions/staged-tokens.ts';
import * as store from '../../shared/transactions/transaction-store.ts';
import { createPlanDatabase, type PlanDatabase } from './generic-plans.ts';

const TENANT = randomUUID();
const TRANSACTION = { tenant_id: TENANT, id: randomUUID(), application_id: randomUUID() };

/** Tables with much in them, each with the index by which single rows are found. */
const LARGE: Record<string, RegExp> = {
  tokens: /^tokens_(?:pkey|fingerprint)$/,
  token_terms: /^token_terms_pkey$/,
  token_cvcs: /^token_cvcs_pkey$/,
  idempotency_records: /^idempotency_records_pkey$/,
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
  INSERT INTO idempotency_records (tenant_id, scope, token_id, shows_mask)
    SELECT tenant_id, gen_random_uuid(), id, true FROM tokens;
  INSERT INTO staged_tokens (tenant_id, transaction_id, id, operation, previous_container, type,
      container, sealed, terms, created_by, created_at)
    SELECT tenant_id, '${TRANSACTION.id}', id, (ARRAY['update', 'delete', 'replace'])[1 + n::int % 3],
      container, type, container, '', ARRAY['\\x00'::bytea], created_by, created_at
    FROM (SELECT *, row_number() OVER () AS n FROM tokens LIMIT 6) t;`;

/** Records name tokens, but none that is staged. */
const NOTHING = (): Promise<never> => Promise.reject(new Error('nothing is to be written down'));
const KEY = createSecretKey(Buffer.alloc(32));
const SEALING: AnswerSealing = {
  keys: { current: { version: 1, key: KEY }, versions: new Map(), fingerprint: KEY, search: KEY },
  opener: { open: NOTHING },
};

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
  'commit what is staged': (db) => applyStaged(db, TRANSACTION, () => undefined, SEALING),
  'clear what is staged': (db) => store.clearStaged(db, TRANSACTION),
};

describe('the generic plans of transactions', () => {
  let plans: PlanDatabase;
  before(async () => {
    plans = await createPlanDatabase();
  });
  after(() => plans?.drop());

  async function expectProbes(text: string): Promise<void> {
    for (const node of await plans.genericPlan(text)) {
      const table = node['Relation Name'] ?? '';
      const isWrite = node['Node Type'] === 'ModifyTable';
      const index = LARGE[table];
      const where = `${table} in ${text.trim().slice(0, 80)}`;
      expect(node['Node Type'], where).not.to.equal('Seq Scan');
      // Never all that the transactions of a tenant hold.
      if (node['Index Name']?.startsWith('token_locks_')) {
        expect(node['Index Cond'], where).to.match(/\b(?:token_id|transaction_id) =/);
      }
      if (index === undefined || isWrite) continue;
      expect(node['Index Name'], where).to.match(index);
      expect(node['Index Cond'], where).to.match(/\b(?:id|token_id|fingerprint|scope) =/);
    }
  }

  for (const tokens of [60, 20_000]) {
    describe(`on ${tokens} tokens`, () => {
      before(async function () {
        this.timeout(60_000);
        await plans.admin.query(
          `TRUNCATE ${Object.keys(LARGE).join(', ')}, staged_tokens, token_locks`,
        );
        await plans.admin.query(seed(tokens));
        await plans.admin.query(`ANALYZE ${Object.keys(LARGE).join(', ')}`);
      });
      it('find tokens by their keys to stage creates', () => expectProbes(STAGE_CREATES.text));
      for (const { name, text } of [READ_NAMED, WRITE_DOWN]) {
        it(`find tokens and their records by their keys to ${name}`, async () => {
          const used = (await plans.genericPlan(text)).map((node) => node['Index Name']);
          expect(used).to.include('idempotency_records_pkey');
          await expectProbes(text);
        });
      }
      for (const [name, run] of Object.entries(CALLS)) {
        it(`find tokens by their keys to ${name}`, async () => {
          const texts = await plans.statementsOf(run);
          expect(texts).not.to.have.lengthOf(0);
          for (const text of texts) await expectProbes(text);
        });
      }
      it('are those of a commit that did something', async () => {
        const { rows } = await plans.admin.query('SELECT count(*)::int4 AS n FROM staged_tokens');
        expect(rows[0]?.n).to.equal(0);
      });
    });
  }
});
