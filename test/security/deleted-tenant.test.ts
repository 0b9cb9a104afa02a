/** A tenant is deleted while its callers write: nothing of it stays, and nothing of it opens again. */
import { expect } from 'chai';
import { purgeDeletedTenants } from '../../control-plane/tenants/purge-deleted-tenants.ts';
import { begin } from '../api/transactions/transaction-client.ts';
import { type Sample, startCallers } from '../support/callers.ts';
import { randomCardNumber } from '../support/card-numbers.ts';
import type { TestTenant } from '../support/control-plane.ts';
import { call } from '../support/http-call.ts';
import {
  createApplication,
  startTestPlanes,
  type TestApplication,
  type TestPlanes,
} from './planes.ts';

const CALLERS = 10;
const ANSWERS_BEFORE = 60;
const ANSWERS_AFTER = 30;
/** A write that was in flight at the deletion has landed long before. */
const PASSES_MAX = 50;

describe('a tenant that is deleted under load', () => {
  let planes: TestPlanes;
  let url: string;
  let gone: TestTenant;
  let goneKey: TestApplication;
  let other: TestApplication;
  let samples: Sample[];

  before(async () => {
    planes = await startTestPlanes({ LOG_LEVEL: 'silent' });
    url = planes.urls[0] ?? '';
    gone = await planes.addTenant('Gone');
    goneKey = await createApplication(url, gone);
    other = await createApplication(url, planes.tenant);
    await call(url, 'POST /tokens', {
      key: other.key,
      json: { id: 'kept', type: 'token', data: 1 },
    });
    const code = 'module.exports = () => ({});';
    const formula = { name: 'F', type: 'private', code };
    for (const [line, json] of [
      ['POST /reactor-formulas', formula],
      ['POST /reactors', { name: 'R', code }],
      ['POST /proxies', { name: 'P', destination_url: 'https://destination.example' }],
    ] as const) {
      const made = await call(url, line, { key: gone.managementKey, json });
      expect(made.status).to.equal(201);
    }
    await stageSomething();
    const callers = startCallers(CALLERS, (caller) => {
      const json = {
        type: 'card',
        data: { number: randomCardNumber(), cvc: '123' },
        metadata: { a: 'b' },
        deduplicate_token: caller % 2 === 0,
      };
      return {
        line: 'POST /tokens',
        answer: call(url, 'POST /tokens', { key: goneKey.key, json }),
      };
    });
    await callers.answered(ANSWERS_BEFORE);
    const { status } = await call(url, 'DELETE /tenants/self', { key: gone.managementKey });
    expect(status).to.equal(204);
    await callers.answeredSince(Date.now(), ANSWERS_AFTER);
    samples = await callers.stop();
  });
  after(() => planes.stop());

  /** A card that a transaction has not committed, and one that it holds. */
  async function stageSomething(): Promise<void> {
    const transaction = await begin(url, goneKey.key);
    const data = { number: randomCardNumber(), cvc: '123' };
    await transaction.created({ type: 'card', data, id: 'staged' });
    expect((await rowsOf(gone.id)).token_locks).to.equal(1);
  }

  /** How many rows each table with tenants in it has of this one. */
  async function rowsOf(tenantId: string): Promise<Record<string, number>> {
    const { rows } = await planes.admin.query<{ name: string; column: string }>(
      `SELECT table_name AS name, column_name AS column FROM information_schema.columns
       WHERE table_schema = 'public'
         AND (column_name = 'tenant_id' OR (table_name, column_name) = ('tenants', 'id'))`,
    );
    const counts: Record<string, number> = {};
    for (const { name, column } of rows) {
      const found = await planes.admin.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM ${name} WHERE ${column} = $1`,
        [tenantId],
      );
      counts[name] = found.rows[0]?.count ?? 0;
    }
    return counts;
  }

  it('answers 201 before and 401 after, and never anything else', () => {
    const odd = samples.filter(({ status }) => status !== 201 && status !== 401);
    expect(odd).to.deep.equal([]);
  });

  it('loses its keys at once', async () => {
    const { tokens, ...counts } = await rowsOf(gone.id);
    const keys = ['tenants', 'tenant_keys', 'key_directory', 'application_keys', 'applications'];
    for (const table of keys) expect(counts[table], table).to.equal(0);
    expect(tokens).to.be.a('number');
  });

  it('leaves no row but in the audit trail, and takes none of another tenant', async () => {
    for (let pass = 1; pass <= PASSES_MAX; pass += 1) {
      await purgeDeletedTenants(planes.admin);
      const { tenant_deletions: _, ...all } = await rowsOf(gone.id);
      // The trail has no values; who deleted the tenant must not be gone with it.
      const counts = Object.entries(all).flatMap(([table, count]) =>
        table.startsWith('audit_') ? [] : [count],
      );
      if (counts.every((count) => count === 0)) break;
      expect(pass, JSON.stringify(counts)).to.be.lessThan(PASSES_MAX);
    }
    const { body } = await call(url, 'GET /tokens/kept', { key: other.key });
    expect(body).to.include({ id: 'kept', data: 1 });
  });

  it('does not come back with its id', async () => {
    await planes.admin.query(
      `INSERT INTO tenants (id, name, config_version) VALUES ($1, 'Undead', gen_random_uuid())`,
      [gone.id],
    );
    const { status } = await call(url, 'GET /tokens', { key: goneKey.key });
    expect(status).to.equal(401);
    await planes.admin.query('DELETE FROM tenants WHERE id = $1', [gone.id]);
  });
});
