import { expect } from 'chai';
import { purgeDeletedTenants } from '../../../control-plane/tenants/purge-deleted-tenants.ts';
import type { Tenant } from '../../../shared/api/tenants.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { call, type JsonObject } from '../../support/http-call.ts';

describe('/tenants/self', () => {
  let server: TestControlPlane;
  let tenant: TestTenant;

  before(async () => {
    server = await startTestControlPlane();
  });
  beforeEach(async () => {
    tenant = await server.addTenant('Globex');
  });
  after(() => server.stop());

  const manage = <T = Tenant>(line: string, json?: unknown) =>
    call<T>(server.baseUrl, line, { key: tenant.managementKey, json });

  it('GET answers the tenant of the key', async () => {
    const { status, body } = await manage('GET /tenants/self/');
    expect(status).to.equal(200);
    expect(body).to.have.all.keys('id', 'name', 'settings', 'created_at');
    expect(body).to.include({ id: tenant.id, name: 'Globex' });
    expect(body.settings).to.deep.equal({});
  });

  it('PUT renames and keeps the settings unless they are given', async () => {
    const settings = { deduplicate_tokens: 'true', fingerprint_tokens: 'false', of_tomorrow: 'x' };
    const first = await manage('PUT /tenants/self', { name: 'A', settings });
    expect(first.status).to.equal(200);
    expect(first.body.settings).to.deep.equal(settings);
    expect(first.body.modified_by).to.equal(tenant.managementApplicationId);
    const renamed = await manage('PUT /tenants/self', { name: 'B' });
    expect(renamed.body).to.deep.include({ name: 'B', settings });
    const cleared = await manage('PUT /tenants/self', { name: 'B', settings: null });
    expect(cleared.body.settings).to.deep.equal({});
  });

  it('PUT keeps a setting named __proto__ as it is', async () => {
    const body = '{"name":"A","settings":{"__proto__":"x"}}';
    const headers = { 'content-type': 'application/json' };
    const options = { key: tenant.managementKey, body, headers };
    const answer = await call(server.baseUrl, 'PUT /tenants/self', options);
    expect(answer.status).to.equal(200);
    expect(answer.text).to.contain('"settings":{"__proto__":"x"}');
  });

  const refused: [string, JsonObject, string][] = [
    ['no name', {}, 'name'],
    [
      'a boolean setting',
      { name: 'A', settings: { deduplicate_tokens: true } },
      'settings.deduplicate_tokens',
    ],
    [
      'another word than true and false',
      { name: 'A', settings: { fingerprint_tokens: 'yes' } },
      'settings.fingerprint_tokens',
    ],
    ['settings that are a list', { name: 'A', settings: [] }, 'settings'],
    ['a setting that is a number', { name: 'A', settings: { other: 1 } }, 'settings'],
    [
      'a setting of 501 characters',
      { name: 'A', settings: { other: 'x'.repeat(501) } },
      'settings',
    ],
    ['a setting with NUL', { name: 'A', settings: { other: 'a\0' } }, 'settings'],
    ['a name of a setting with a space', { name: 'A', settings: { '4242 4242': 'x' } }, 'settings'],
    [
      '51 settings',
      {
        name: 'A',
        settings: Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`s${i}`, 'x'])),
      },
      'settings',
    ],
  ];
  for (const [what, json, path] of refused) {
    it(`PUT refuses ${what}`, async () => {
      const { status, body, text } = await manage<JsonObject>('PUT /tenants/self', json);
      expect(status).to.equal(400);
      expect(body.errors).to.have.all.keys(path);
      expect(text).not.to.contain('4242');
    });
  }

  describe('DELETE', () => {
    it('answers 204; every key of the tenant stops at once, and of no other', async () => {
      const made = await manage<{ key: string }>('POST /applications', {
        name: 'x',
        type: 'public',
        permissions: ['token:create'],
      });
      expect((await manage('DELETE /tenants/self')).status).to.equal(204);
      for (const key of [tenant.managementKey, made.body.key]) {
        const { status } = await call(server.baseUrl, 'GET /applications/key', { key });
        expect(status).to.equal(401);
      }
      const { managementKey: key } = server.tenant;
      expect((await call(server.baseUrl, 'GET /tenants/self', { key })).status).to.equal(200);
    });

    it('shreds the keys and removes every row in every table but the audit trail', async () => {
      await addTokenRows(tenant.id, 2_500);
      const other = await server.addTenant('Other');
      await addTokenRows(other.id, 3);
      await manage('DELETE /tenants/self');
      const keys = await server.pool.query('SELECT 1 FROM tenant_keys WHERE tenant_id = $1', [
        tenant.id,
      ]);
      expect(keys.rowCount).to.equal(0);

      // The server's own loop may be at work too; every pass is finite.
      while ((await rowsOf(tenant.id)).tokens > 0) await purgeDeletedTenants(server.pool);
      expect((await rowsOf(tenant.id)).others).to.deep.equal(['tenant_deletions']);
      expect((await rowsOf(other.id)).tokens).to.equal(3);
    });

    it('removes a write that was in flight, and forgets the deletion only after it', async () => {
      await manage('DELETE /tenants/self');
      await purgeDeletedTenants(server.pool);
      await addTokenRows(tenant.id, 1);
      expect((await rowsOf(tenant.id)).others).to.contain('tenant_deletions');
      await server.pool.query(
        `UPDATE tenant_deletions SET deleted_at = deleted_at - interval '11 seconds'`,
      );
      // One pass removes the late row; another one that finds nothing ends it.
      while ((await rowsOf(tenant.id)).others.length > 0) await purgeDeletedTenants(server.pool);
      expect((await rowsOf(tenant.id)).tokens).to.equal(0);
    });

    it('leaves no orphan when applications are made meanwhile', async () => {
      const create = () =>
        manage<JsonObject>('POST /applications', {
          name: 'x',
          type: 'public',
          permissions: ['token:create'],
        });
      const racing = Array.from({ length: 6 }, create);
      const deletion = await manage('DELETE /tenants/self');
      const statuses = (await Promise.all(racing)).map(({ status }) => status);
      expect(deletion.status).to.equal(204);
      for (const status of statuses) expect(status).to.be.oneOf([201, 401]);
      expect((await rowsOf(tenant.id)).others).to.deep.equal(['tenant_deletions']);
    });
  });

  /** Rows as the data plane leaves them; their contents do not matter here. */
  async function addTokenRows(tenantId: string, count: number): Promise<void> {
    await server.pool.query(
      `INSERT INTO tokens (tenant_id, id, type, container, sealed, created_by)
       SELECT $1, 'token-' || n || gen_random_uuid(), 'token', '/', '\\x00', $1
       FROM generate_series(1, $2::integer) n`,
      [tenantId, count],
    );
    await server.pool.query(
      `INSERT INTO token_terms (tenant_id, token_id, hash)
       SELECT tenant_id, id, '\\x01' FROM tokens WHERE tenant_id = $1`,
      [tenantId],
    );
  }

  /** The tenant's tokens, and every table that still has a row of it (found in the catalogue). */
  async function rowsOf(tenantId: string): Promise<{ tokens: number; others: string[] }> {
    const { rows: tables } = await server.pool.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.columns
       WHERE table_schema = 'public' AND column_name = 'tenant_id'
         -- It has no values, and who deleted the tenant must not be gone with it.
         AND table_name NOT LIKE 'audit%' ORDER BY table_name`,
    );
    const others: string[] = [];
    let tokens = 0;
    for (const { name } of tables) {
      const found = await server.pool.query<{ count: number }>(
        `SELECT count(*)::integer AS count FROM ${name} WHERE tenant_id = $1`,
        [tenantId],
      );
      const count = found.rows[0]?.count ?? 0;
      if (name === 'tokens') tokens = count;
      if (count > 0) others.push(name);
    }
    return { tokens, others };
  }
});
