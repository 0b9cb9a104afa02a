/**
 * The plans of the statements that run for every request, on a large table and without its statistics:
 * a prepared statement keeps its generic plan, and a plan that walks a table takes the service down.
 */
import { createSecretKey, randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { createChangeRecord } from '../../data-plane/config-cache/change-record.ts';
import { loadApplicationByKeyHash } from '../../shared/config-entries/application-entry.ts';
import { readConfigVersions } from '../../shared/config-entries/config-version.ts';
import { WRITE_DOWN } from '../../shared/idempotency/named-token.ts';
import { READ_RECORDS } from '../../shared/idempotency/record-store.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { findDuplicates } from '../../shared/tokens/find-duplicates.ts';
import { listTokens, type TokenFilter } from '../../shared/tokens/list-tokens.ts';
import { SEALED_TOKENS, WHOLE_TOKENS } from '../../shared/tokens/read-rows.ts';
import { parseSearchQuery } from '../../shared/tokens/search-query.ts';
import { searchTokens } from '../../shared/tokens/search-tokens.ts';
import * as store from '../../shared/tokens/token-store.ts';
import { INSERT_KEYED_TOKENS, INSERT_TOKENS } from '../../shared/tokens/token-writer.ts';
import { createPlanDatabase, type PlanDatabase } from './generic-plans.ts';

/** Owns half of all tokens; the others share the rest. */
const BIG_TENANT = '00000000-0000-4000-8000-000000000000';

const seed = (tokens: number, tenants: number): string => `
  INSERT INTO tenants (id, name, config_version)
    SELECT '${BIG_TENANT}'::uuid, 'Big', gen_random_uuid()
    UNION ALL SELECT gen_random_uuid(), 'Small', gen_random_uuid() FROM generate_series(2, ${tenants});
  CREATE TEMP TABLE numbered AS SELECT id, row_number() OVER (ORDER BY id) AS n FROM tenants;
  INSERT INTO tokens (tenant_id, id, type, container, fingerprint, sealed, expires_at, created_by, created_at)
    SELECT CASE WHEN g % 2 = 0 THEN '${BIG_TENANT}'::uuid ELSE t.id END, 'token-' || g,
      (ARRAY['card', 'token', 'bank'])[1 + g % 3], (ARRAY['/pci/high/', '/general/high/'])[1 + g % 2],
      md5(g::text), '\\x00', CASE WHEN g % 10 = 0 THEN now() + g * interval '1 s' END,
      gen_random_uuid(), now() - g * interval '1 s'
    FROM generate_series(1, ${tokens}) AS g JOIN numbered t ON t.n = 1 + g % ${tenants};
  DROP TABLE numbered;
  INSERT INTO token_terms (tenant_id, token_id, hash)
    SELECT tenant_id, id, decode(md5(id || k), 'hex') FROM tokens, generate_series(1, 2) AS k;
  INSERT INTO token_cvcs (tenant_id, token_id, sealed, due_at)
    SELECT tenant_id, id, '\\x00', now() FROM tokens WHERE type = 'card' LIMIT 20000;
  INSERT INTO token_counts (tenant_id, container, type, count)
    SELECT tenant_id, container, type, count(*) FROM tokens GROUP BY 1, 2, 3;
  INSERT INTO config_changes (tenant_id, version, kind, id, previous_version)
    SELECT id, gen_random_uuid(), 'application', gen_random_uuid(), gen_random_uuid()
    FROM tenants, generate_series(1, 10);
  INSERT INTO applications (tenant_id, id, name, type, permissions, rules)
    SELECT id, gen_random_uuid(), 'x', 'private', '{}', '[]' FROM tenants, generate_series(1, 5);
  INSERT INTO key_directory (hash, tenant_id, kind, id)
    SELECT decode(md5(id::text), 'hex'), tenant_id, 'application', id FROM applications;
  INSERT INTO idempotency_records (tenant_id, scope, token_id, shows_mask)
    SELECT tenant_id, gen_random_uuid(), id, true FROM tokens WHERE expires_at IS NULL;
`;

const SEEDED = [
  ...['tenants', 'tokens', 'token_terms', 'token_cvcs', 'token_counts', 'config_changes'],
  ...['applications', 'key_directory', 'idempotency_records'],
];

const visible = (over: Partial<TokenFilter>): TokenFilter => ({
  containers: ['/'],
  types: undefined,
  terms: undefined,
  ids: undefined,
  ...over,
});

const FILTERS: Record<string, TokenFilter> = {
  everything: visible({}),
  'by container': visible({ containers: ['/pci/'] }),
  'by type': visible({ types: ['card'] }),
  'by ids': visible({ ids: ['token-1', 'token-2'] }),
  'by terms': visible({ terms: [randomBytes(16), randomBytes(16)] }),
  'by ids and terms': visible({ ids: ['token-1'], terms: [randomBytes(16)] }),
};

/** Searches, with the index by which the tokens they are about must be found. */
const SEARCHES: Record<string, string> = {
  'id:token-2 AND type:card': 'tokens_pkey',
  'fingerprint:x AND NOT data:a': 'tokens_fingerprint',
  'data:a AND type:card AND created_at:[2023-01-01 TO *]': 'token_terms_by_hash',
  'metadata.k:v AND NOT (data:a OR data:b)': 'token_terms_by_hash',
  'data:a OR metadata.k:v': 'token_terms_by_hash',
  'container:/pci/* AND (data:a OR fingerprint:x)': 'tokens_fingerprint',
  'container:/pci/high/ AND type:card': 'tokens_newest_of_kind',
};

const search = (db: Queryable, query: string): Promise<unknown> =>
  searchTokens(
    db,
    BIG_TENANT,
    { search: createSecretKey(randomBytes(32)) },
    { containers: ['/pci/'], query: parseSearchQuery(query) ?? { kind: 'and', nodes: [] } },
    { limit: 20, offset: 0 },
  );

/** Statements of the request path, run as the product runs them. */
const CALLS: Record<string, (db: Queryable) => Promise<unknown>> = {
  'lock a token': (db) => store.lockToken(db, BIG_TENANT, 'token-2'),
  'delete a token': (db) => store.deleteToken(db, BIG_TENANT, 'nothing'),
  'free an id': (db) => store.freeId(db, BIG_TENANT, 'nothing'),
  'find a duplicate': (db) => store.findByFingerprint(db, BIG_TENANT, 'x', undefined),
  'find many duplicates': (db) => findDuplicates(db, BIG_TENANT, new Set(['x', 'y'])),
  'find a key': (db) => loadApplicationByKeyHash(db, randomBytes(32)),
  'read versions': (db) => readConfigVersions(db, [BIG_TENANT]),
  'read changes': (db) => createChangeRecord(db)(BIG_TENANT, randomUUID(), randomUUID()),
  ...Object.fromEntries(
    Object.entries(FILTERS).map(([name, filter]) => [
      `list tokens: ${name}`,
      (db: Queryable) => listTokens(db, BIG_TENANT, filter, { limit: 20, offset: 0 }),
    ]),
  ),
  ...Object.fromEntries(
    Object.keys(SEARCHES).map((query) => [
      `search tokens: ${query}`,
      (db: Queryable) => search(db, query),
    ]),
  ),
};

describe('the generic plans of the request path', () => {
  let plans: PlanDatabase;
  before(async () => {
    plans = await createPlanDatabase();
  });
  after(() => plans?.drop());

  async function expectNoWalk(text: string): Promise<void> {
    const walks = (await plans.genericPlan(text)).filter(
      (node) => node['Node Type'] === 'Seq Scan',
    );
    expect(
      walks.map((node) => node['Relation Name']),
      text,
    ).to.deep.equal([]);
  }

  // The first plans are made soon after the first tokens came, and kept while thousands arrive.
  const sizes: [tokens: number, tenants: number][] = [
    [60, 2],
    [200_000, 2_000],
  ];
  for (const [tokens, tenants] of sizes) {
    describe(`on ${tokens} tokens of ${tenants} tenants`, () => {
      before(async function () {
        this.timeout(60_000);
        await plans.admin.query(`TRUNCATE ${SEEDED.join(', ')}`);
        await plans.admin.query(seed(tokens, tenants));
        await plans.admin.query('ANALYZE');
      });

      for (const [kind, { many, one }] of Object.entries({ WHOLE_TOKENS, SEALED_TOKENS })) {
        it(`probe the primary keys for each token that is read: ${kind}`, async () => {
          const nodes = await plans.genericPlan(many.text);
          const indexes = nodes
            .map((node) => node['Index Name'])
            .filter((name) => name !== undefined);
          expect(indexes.sort()).to.deep.equal(['tenants_pkey', 'token_cvcs_pkey', 'tokens_pkey']);
          await expectNoWalk(many.text);
        });

        it(`probe the primary keys for a token that is read alone: ${kind}`, async () => {
          const used = (await plans.genericPlan(one.text)).map((node) => node['Index Name']);
          expect(used).to.include.members(['tenants_pkey', 'token_cvcs_pkey', 'tokens_pkey']);
          await expectNoWalk(one.text);
        });
      }

      for (const [name, filter] of Object.entries(FILTERS)) {
        // A join would read every token of the table for a page of twenty.
        it(`probe the primary key for each token of a page: ${name}`, async () => {
          const window = { limit: 20, offset: 0 };
          const texts = await plans.statementsOf((db) =>
            listTokens(db, BIG_TENANT, filter, window),
          );
          for (const text of texts) {
            const nodes = await plans.genericPlan(text);
            const probes = nodes.filter(
              (node) =>
                node['Node Type'] === 'Limit' && node.Plans?.[0]?.['Index Name'] === 'tokens_pkey',
            );
            // Once for their lengths, once for their columns.
            expect(probes).to.have.lengthOf(2);
          }
        });
      }

      it('walk no table for tokens that are created', () => expectNoWalk(INSERT_TOKENS.text));
      it('walk no table for tokens that are created with a key', () =>
        expectNoWalk(INSERT_KEYED_TOKENS.text));
      // The table is empty when most plans are made, and may have a million rows of one tenant later.
      it('probe the primary key for ids that transactions hold', async () => {
        const lock = await plans.statementsOf((db) => store.lockToken(db, BIG_TENANT, 'token-2'));
        for (const text of [INSERT_TOKENS.text, INSERT_KEYED_TOKENS.text, lock.at(-1) ?? '']) {
          const nodes = await plans.genericPlan(text);
          const used = nodes.filter((node) => node['Relation Name'] === 'token_locks');
          expect(used.map((node) => node['Index Name'])).to.deep.equal(['token_locks_pkey']);
        }
      });
      it('probe the primary key for records of keys', async () => {
        const lock = await plans.statementsOf((db) => store.lockToken(db, BIG_TENANT, 'token-2'));
        const texts = [READ_RECORDS.text, INSERT_KEYED_TOKENS.text, lock.at(-1) ?? ''];
        for (const text of [...texts, WRITE_DOWN.text]) {
          const used = (await plans.genericPlan(text)).map((node) => node['Index Name']);
          expect(used).to.include('idempotency_records_pkey');
          expect(used).not.to.include('idempotency_records_by_age');
          await expectNoWalk(text);
        }
        const read = await plans.genericPlan(READ_RECORDS.text);
        expect(read.map((node) => node['Index Name'])).to.include('tokens_pkey');
      });

      for (const [query, index] of Object.entries(SEARCHES)) {
        it(`search by ${index} for ${query}`, async () => {
          const [text = ''] = await plans.statementsOf((db) => search(db, query));
          const used = (await plans.genericPlan(text)).map((node) => node['Index Name']);
          expect(used).to.include(index);
          // Candidates are looked up one by one, never joined with all tokens of the tenant.
          const walks = ['tokens_newest', 'tokens_newest_of_kind'].filter((name) => name !== index);
          expect(used).not.to.include.oneOf(walks);
        });
      }

      for (const [name, run] of Object.entries(CALLS)) {
        it(`walk no table to ${name}`, async () => {
          const statements = await plans.statementsOf(run);
          expect(statements).not.to.have.lengthOf(0);
          for (const text of statements) await expectNoWalk(text);
        });
      }
    });
  }
});
