/** How much code and configuration of its tenants a process keeps, however few reactors or proxies. */
import { createSecretKey, randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { QueryConfig } from 'pg';
import { createChangeRecord } from '../../../data-plane/config-cache/change-record.ts';
import { createProxyCache } from '../../../data-plane/config-cache/proxy-cache.ts';
import { createReactorCache } from '../../../data-plane/config-cache/reactor-cache.ts';
import { generateProxyKey, hashProxyKey } from '../../../shared/api-keys.ts';
import type { Pool, Queryable } from '../../../shared/postgres/pool.ts';
import { createTestPool, type TestPool } from '../../support/postgres.ts';

/** A mebibyte of code is two of memory, if any letter of it is wide: 32 of them fill 64 MiB. */
const TOO_MANY = 40;
const MEBIBYTE = 'x'.repeat(1024 * 1024);

describe('the configuration that a process keeps', () => {
  const tenantId = randomUUID();
  const version = randomUUID();
  const pepper = createSecretKey(randomBytes(32));
  let database: TestPool;
  let pool: Pool;
  let db: Queryable;
  let statements = 0;

  before(async () => {
    database = await createTestPool(2);
    pool = database.pool;
    const query = (statement: QueryConfig): Promise<unknown> => {
      statements += 1;
      return pool.query(statement);
    };
    db = { query } as unknown as Queryable;
    await pool.query(`INSERT INTO tenants (id, name, config_version) VALUES ($1, 'x', $2)`, [
      ...[tenantId, version],
    ]);
  });
  after(() => database?.drop());

  const shared = () => ({
    ...{ db, pepper, changesBetween: createChangeRecord(db), versionOf: async () => version },
    ...{ onRefresh: () => undefined, onWarmFailure: () => undefined },
  });
  const statementsOf = async (ask: () => Promise<unknown>): Promise<number> => {
    statements = 0;
    expect(await ask()).not.to.equal(undefined);
    return statements;
  };

  it('is 64 MiB of reactors', async () => {
    const { rows } = await pool.query<{ id: string }>(
      `INSERT INTO reactors (tenant_id, id, name, code, code_version)
       SELECT $1, gen_random_uuid(), 'x', $2, gen_random_uuid() FROM generate_series(1, $3::int)
       RETURNING id`,
      [tenantId, MEBIBYTE, TOO_MANY],
    );
    const { at } = createReactorCache(shared());
    for (const { id } of rows) await at(tenantId, id, version);
    expect(await statementsOf(async () => at(tenantId, rows.at(-1)?.id ?? '', version))).to.equal(
      0,
    );
    expect(await statementsOf(async () => at(tenantId, rows[0]?.id ?? '', version))).to.equal(1);
  });

  it('is 64 MiB of proxies, sealed configuration included', async () => {
    const keys: string[] = [];
    for (let count = 0; count < TOO_MANY; count += 1) {
      const key = generateProxyKey();
      const id = randomUUID();
      await pool.query(
        `INSERT INTO proxies
           (tenant_id, id, name, destination_url, key_sealed, request_transform, configuration_sealed)
         VALUES ($1, $2, 'x', 'https://example.com', '\\x00', $3, $4)`,
        [
          ...[tenantId, id, { code: MEBIBYTE.slice(0, 512 * 1024), code_version: 'v' }],
          Buffer.alloc(MEBIBYTE.length),
        ],
      );
      await pool.query(
        `INSERT INTO key_directory (hash, tenant_id, kind, id) VALUES ($1, $2, 'proxy', $3)`,
        [hashProxyKey(key, pepper), tenantId, id],
      );
      keys.push(key);
    }
    const proxies = createProxyCache(shared());
    for (const key of keys) await proxies.load(key);
    const known = keys.map((key) => proxies.cached(key) !== undefined);
    expect(known.at(-1)).to.equal(true);
    expect(known.filter(Boolean).length).to.be.within(28, 32);
    expect(await statementsOf(() => proxies.load(keys[0] ?? ''))).to.equal(1);
  });
});
