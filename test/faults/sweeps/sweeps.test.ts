/**
 * What time has ended is removed with all that belongs to it, once, whoever sweeps; what is still good
 * stays. Time travel is a pool whose clock is set ahead.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { sweepsOf } from '../../../data-plane/run-sweeps.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createPool, inTransaction, type Pool } from '../../../shared/postgres/pool.ts';
import { keepSweeping } from '../../../shared/sweeps/keep-sweeping.ts';
import { sweepExpiredTokens } from '../../../shared/tokens/sweep-tokens.ts';
import { HOUR_S, startVault, type Vault } from '../../api/tokens/vault.ts';
import { randomCardNumber } from '../../support/card-numbers.ts';

const DAY_S = 24 * HOUR_S;
const log = createLogger('test', 'silent');

describe('sweeps', function () {
  this.timeout(60_000);
  let vault: Vault;
  let pool: Pool;
  const pools: Pool[] = [];
  before(async () => {
    vault = await startVault();
    pool = vault.control.pool;
  });
  after(async () => {
    await Promise.all(pools.map((one) => one.end()));
    await vault?.stop();
  });

  /** Sees the same database at a later time. */
  function ahead(seconds: number): Pool {
    const made = createPool({
      ...{ connectionString: vault.control.database.connectionString, max: 4, log },
      ...{ applicationName: 'test-sweeps', clockOffsetSeconds: seconds },
    });
    pools.push(made);
    return made;
  }

  async function count(sql: string, values: unknown[] = []): Promise<number> {
    const { rows } = await pool.query(`SELECT count(*)::int4 AS count FROM ${sql}`, values);
    return rows[0].count;
  }

  /** Rows as a create leaves them, due an hour from now. */
  async function fill(tenants: number, tokens: number): Promise<void> {
    await pool.query(
      `WITH made AS (
         INSERT INTO tokens (tenant_id, id, type, container, sealed, expires_at, created_by)
         SELECT md5((g % $1)::text)::uuid, 'filled-' || g, 'token', '/general/high/', 'x',
           clock_now() + interval '1 hour', gen_random_uuid()
         FROM generate_series(1, $2::int4) AS g RETURNING tenant_id, id, container, type
       ), terms AS (
         INSERT INTO token_terms SELECT tenant_id, id, 'hash' FROM made
       )
       INSERT INTO token_count_deltas (tenant_id, container, type, delta)
       SELECT tenant_id, container, type, 1 FROM made`,
      [tenants, tokens],
    );
  }

  /** Of all tenants: what lists would show, folded or not. */
  async function total(): Promise<number> {
    const { rows } = await pool.query(
      `SELECT (coalesce((SELECT sum(count) FROM token_counts), 0)
        + coalesce((SELECT sum(delta) FROM token_count_deltas), 0))::int4 AS total`,
    );
    return rows[0].total;
  }

  it('expired tokens go with their terms, cvcs and counts, and are in the audit trail', async () => {
    const expires_at = new Date(Date.now() + 1_800_000).toISOString();
    const data = { number: randomCardNumber(), expiration_month: 1, expiration_year: 2040 };
    const card = { type: 'card', data: { ...data, cvc: '123' }, metadata: { order: 'o-1' } };
    const expiring = await vault.tokens.created({ ...card, expires_at });
    const lasting = await vault.tokens.created({ ...card });
    const later = ahead(HOUR_S - 60);
    expect(await sweepExpiredTokens(pool, 100)).to.equal(0);
    expect(await sweepExpiredTokens(later, 100)).to.equal(1);
    expect(await sweepExpiredTokens(later, 100)).to.equal(0);
    for (const [table, column] of [
      ['tokens', 'id'],
      ['token_terms', 'token_id'],
      ['token_cvcs', 'token_id'],
    ]) {
      const left = (id: unknown) => count(`${table} WHERE ${column} = $1`, [id]);
      expect(await left(expiring.id), table).to.equal(0);
      expect(await left(lasting.id), table).to.be.greaterThan(0);
    }
    expect(await total()).to.equal(1);
    const { rows } = await pool.query(
      `SELECT entity_type, operation, actor_type, actor_id, container, denied FROM audit_log
       WHERE entity_id = $1 AND actor_type = 'system'`,
      [expiring.id],
    );
    expect(rows).to.deep.equal([
      {
        ...{ entity_type: 'token', operation: 'delete', actor_type: 'system', actor_id: null },
        ...{ container: '/pci/high/', denied: false },
      },
    ]);
    await pool.query('TRUNCATE tokens, token_terms, token_cvcs, token_counts, token_count_deltas');
  });

  it('two sweepers never handle a row twice nor wait for each other', async () => {
    await fill(7, 4_000);
    expect(await total()).to.equal(4_000);
    const sweepers = [ahead(2 * HOUR_S), ahead(2 * HOUR_S)];
    const swept = await Promise.all(
      sweepers.map(async (sweeper) => {
        let sum = 0;
        for (let idle = 0; idle < 3; ) {
          const rows = await sweepExpiredTokens(sweeper, 150);
          sum += rows;
          idle = rows === 0 ? idle + 1 : 0;
        }
        return sum;
      }),
    );
    expect((swept[0] ?? 0) + (swept[1] ?? 0)).to.equal(4_000);
    expect(Math.min(...swept)).to.be.greaterThan(0);
    expect([await count('tokens'), await count('token_terms'), await total()]).to.deep.equal([
      0, 0, 0,
    ]);
  });

  it('a token that a request holds is left for later', async () => {
    await fill(1, 2);
    const later = ahead(2 * HOUR_S);
    await inTransaction(pool, async (client) => {
      await client.query(`SELECT 1 FROM tokens WHERE id = 'filled-1' FOR UPDATE`);
      expect(await sweepExpiredTokens(later, 100)).to.equal(1);
    });
    expect(await sweepExpiredTokens(later, 100)).to.equal(1);
  });

  /** [table, how long its rows are kept, a row made just now]. */
  const KEPT: readonly [string, number, string][] = [
    [
      'token_cvcs',
      HOUR_S,
      `(tenant_id, token_id, sealed, due_at) SELECT $1, $2::text, 'x', clock_now() + interval '1 hour'`,
    ],
    ['idempotency_records', DAY_S, `(tenant_id, scope, sealed) SELECT $1, $2, 'x'`],
    [
      'jobs',
      DAY_S,
      `(tenant_id, id, kind, sealed, finished_at) SELECT $1, $2, 'react', '', clock_now()`,
    ],
    [
      'reactor_results',
      DAY_S,
      `(tenant_id, id, reactor_id, application_id, sealed) SELECT $1, $2, $2, $2, 'x'`,
    ],
    [
      'transactions',
      DAY_S,
      `(tenant_id, id, state, created_by, created_at, expires_at, finished_at)
       SELECT $1, $2, 'committed', $2, clock_now(), clock_now() + interval '1 hour', clock_now()`,
    ],
    [
      'webhook_secrets',
      DAY_S,
      `(tenant_id, id, sealed, retires_at) SELECT $1, $2, 'x', clock_now() + interval '24 hours'`,
    ],
    [
      'config_changes',
      DAY_S,
      `(tenant_id, version, kind, id, previous_version) SELECT $1, $2, 'proxy', 'p', $2`,
    ],
  ];

  for (const [table, seconds, row] of KEPT) {
    it(`rows of ${table} are kept for their time and not for longer`, async () => {
      const tenant = randomUUID();
      const id = randomUUID();
      await pool.query(`INSERT INTO ${table} ${row}`, [tenant, id]);
      const sweep = async (at: Pool): Promise<number> => {
        const [found] = sweepsOf(at).filter(({ subject }) => subject === table);
        await found?.run(1_000);
        return count(`${table} WHERE tenant_id = $1`, [tenant]);
      };
      expect(await sweep(ahead(seconds - 60))).to.equal(1);
      expect(await sweep(ahead(seconds + 60))).to.equal(0);
    });
  }

  it('jobs that are not finished and secrets that are not replaced stay for ever', async () => {
    const tenant = randomUUID();
    await pool.query(
      `INSERT INTO jobs (tenant_id, id, kind, sealed) VALUES ($1, gen_random_uuid(), 'react', 'x')`,
      [tenant],
    );
    await pool.query(
      `INSERT INTO webhook_secrets (tenant_id, id, sealed) VALUES ($1, gen_random_uuid(), 'x')`,
      [tenant],
    );
    const later = ahead(365 * DAY_S);
    for (const { run } of sweepsOf(later)) await run(1_000);
    expect(await count('jobs WHERE tenant_id = $1', [tenant])).to.equal(1);
    expect(await count('webhook_secrets WHERE tenant_id = $1', [tenant])).to.equal(1);
  });

  it('who knows a configuration whose record was swept away is served the new one', async () => {
    const client = await vault.clientWith({ permissions: ['token:create'] });
    await client.created({ type: 'token', data: 'a' });
    await vault.keyWith({ permissions: ['token:create'] });
    for (const { subject, run } of sweepsOf(ahead(2 * DAY_S))) {
      if (subject === 'config_changes') await run(1_000);
    }
    expect(await count('config_changes WHERE tenant_id = $1', [vault.control.tenant.id])).to.equal(
      0,
    );
    await client.created({ type: 'token', data: 'b' });
  });

  it('a sweep that fails or takes long is given less, and keeps no other from its turn', async () => {
    const stopping = new AbortController();
    const limits: number[] = [];
    let others = 0;
    const counted: [string, number][] = [];
    await keepSweeping({
      log,
      signal: stopping.signal,
      onRows: (subject, rows) => void counted.push([subject, rows]),
      sweeps: [
        {
          ...{ subject: 'failing', every_ms: 0, batch_rows: 1_000 },
          run: async (limit) => {
            limits.push(limit);
            throw new Error('refused');
          },
        },
        {
          ...{ subject: 'other', every_ms: 0 },
          run: async () => {
            others += 1;
            if (others === 4) stopping.abort();
            return 7;
          },
        },
      ],
    });
    expect(limits.slice(0, 4)).to.deep.equal([1_000, 500, 250, 125]);
    expect(counted).to.deep.equal(Array.from({ length: 4 }, () => ['other', 7]));
  });
});
