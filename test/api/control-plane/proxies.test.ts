import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Application } from '../../../shared/api/applications.ts';
import type { ProxyAnswer } from '../../../shared/api/proxies.ts';
import { hashApiKey, hashProxyKey } from '../../../shared/api-keys.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

interface Page {
  pagination: JsonObject;
  data: ProxyAnswer[];
}

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const CODE =
  'module.exports = async (req) => ({ body: req.args.body, headers: req.args.headers });';
const BARE = { name: 'Bare', destination_url: 'https://destination.example/api' };

describe('proxies', () => {
  let server: TestControlPlane;
  let other: TestTenant;

  before(async () => {
    server = await startTestControlPlane();
    other = await server.addTenant('Other');
  });
  after(() => server.stop());

  function manage<T = ProxyAnswer>(
    line: string,
    json?: unknown,
    { managementKey: key } = server.tenant,
  ): Promise<Answer<T>> {
    return call<T>(server.baseUrl, line, { key, ...(json === undefined ? {} : { json }) });
  }
  async function createApplication(over: JsonObject = {}, tenant = server.tenant) {
    const json = { name: 'A', type: 'private', permissions: ['token:create'], ...over };
    return (await manage<Application>('POST /applications', json, tenant)).body;
  }
  async function create(over: JsonObject = {}, tenant = server.tenant): Promise<ProxyAnswer> {
    const made = await manage('POST /proxies', { ...BARE, ...over }, tenant);
    expect(made.status, made.text).to.equal(201);
    return made.body;
  }
  async function hashesOf({ id }: Pick<ProxyAnswer, 'id'>): Promise<Buffer[]> {
    const { rows } = await server.pool.query<{ hash: Buffer }>(
      `SELECT hash FROM key_directory WHERE kind = 'proxy' AND tenant_id = $1 AND id = $2`,
      [server.tenant.id, id],
    );
    return rows.map(({ hash }) => hash);
  }

  describe('POST /proxies', () => {
    it('answers the proxy with a key of its own', async () => {
      const application = await createApplication();
      const given = {
        request_transform: { code: CODE },
        response_transform: { code: `${CODE}\n` },
        configuration: { SERVICE_key: 'sk-canary-1', 'with-dash': null },
        ...{ require_auth: false, leak_tripwire: 'redact' },
      };
      const created = await create({ ...given, application: { id: application.id } });
      const { id, key, created_at, ...rest } = created;
      expect(rest).to.deep.equal({
        ...{ ...BARE, ...given, application_id: application.id },
        ...{ tenant_id: server.tenant.id, created_by: server.tenant.managementApplicationId },
      });
      expect(id).to.match(UUID_V4);
      expect(key).to.match(/^[1-9A-HJ-NP-Za-km-z]{22}$/);
      expect(new Date(created_at).toISOString()).to.equal(created_at);
      expect((await manage(`GET /proxies/${id}`)).body).to.deep.equal(created);
    });

    it('needs a name and a destination only', async () => {
      const { id: _id, key: _key, created_at: _at, created_by: _by, ...rest } = await create();
      const { id: tenant_id } = server.tenant;
      const defaults = { require_auth: true, leak_tripwire: 'report', configuration: {} };
      expect(rest).to.deep.equal({ ...BARE, tenant_id, ...defaults });
      const nulls = await create({
        ...{ request_transform: null, response_transform: null, application: null },
        ...{ configuration: null, require_auth: null, leak_tripwire: null },
      });
      expect(nulls).to.deep.include({ ...BARE, ...defaults });
      expect(nulls).not.to.have.any.keys('request_transform', 'response_transform');
      expect(nulls).not.to.have.any.keys('application_id', 'application');
    });

    it('makes another key for every proxy, found by its hash alone', async () => {
      const [one, two] = [await create(), await create()];
      expect(one.key).not.to.equal(two.key);
      const { pepper } = server.installation;
      expect(await hashesOf(one)).to.deep.equal([hashProxyKey(one.key, pepper)]);
      expect(hashProxyKey(one.key, pepper)).not.to.deep.equal(hashApiKey(one.key, pepper));
    });

    it('takes nothing from the body but the documented members', async () => {
      const own = randomUUID();
      const created = await create({
        ...{ id: own, tenant_id: other.id, key: 'a'.repeat(22), created_by: own },
        ...{ created_at: '2001-01-01T00:00:00Z', state: 'active' },
      });
      expect(created.id).not.to.equal(own);
      expect(created.key).not.to.equal('a'.repeat(22));
      expect(created.tenant_id).to.equal(server.tenant.id);
      expect(created).not.to.have.property('state');
    });

    it('keeps key and configuration sealed, each bound to its proxy', async () => {
      const { id, key } = await create({ configuration: { KEY: 'sk-canary-2' } });
      const { rows } = await server.pool.query<{ text: string; key: Buffer; values: Buffer }>(
        `SELECT p::text AS text, key_sealed AS key, configuration_sealed AS values
         FROM proxies p WHERE id = $1`,
        [id],
      );
      const [row] = rows;
      for (const secret of ['sk-canary-2', key]) {
        expect(row?.text).not.to.contain(secret);
        expect(row?.key.includes(secret)).to.equal(false);
        expect(row?.values.includes(secret)).to.equal(false);
      }
      for (const [column, sealed] of [
        ['key_sealed', row?.key],
        ['configuration_sealed', row?.values],
      ] as const) {
        const { id: moved } = await create();
        await server.pool.query(`UPDATE proxies SET ${column} = $2 WHERE id = $1`, [moved, sealed]);
        const opened = await manage(`GET /proxies/${moved}`);
        expect(opened.status).to.equal(500);
        expect(opened.text).not.to.contain('sk-canary-2').and.not.contain(key);
        await server.pool.query('DELETE FROM proxies WHERE id = $1', [moved]);
      }
    });

    it('acts as public and private applications only, of its own tenant', async () => {
      const shared = await createApplication({ type: 'public' });
      const created = await create({ application: { id: shared.id.toUpperCase() } });
      expect(created.application_id).to.equal(shared.id);
      const theirs = await createApplication({}, other);
      for (const id of [server.tenant.managementApplicationId, theirs.id, randomUUID()]) {
        const json = { ...BARE, application: { id } };
        const { status, body } = await manage<JsonObject>('POST /proxies', json);
        expect(status).to.equal(400);
        expect(body.errors).to.deep.equal({
          'application.id': ['There is no such public or private application'],
        });
      }
    });
  });

  describe('GET /proxies', () => {
    it('lists newest first with all that is in them, in pages', async () => {
      const tenant = await server.addTenant('Lister');
      const made: ProxyAnswer[] = [];
      for (let n = 0; n < 3; n += 1) {
        made.push(await create({ name: `P${n}`, configuration: { n: `${n}` } }, tenant));
      }
      const { body } = await manage<Page>('GET /proxies', undefined, tenant);
      expect(body.data).to.deep.equal(made.toReversed());
      const second = await manage<Page>('GET /proxies/?size=2&page=2', undefined, tenant);
      expect(second.body.data).to.deep.equal(made.slice(0, 1));
      expect(second.body.pagination).to.deep.equal({
        ...{ total_items: 3, page_number: 2, page_size: 2, total_pages: 2 },
      });
      const none = await manage<Page>('GET /proxies?size=0', undefined, tenant);
      expect(none.body.data).to.deep.equal([]);
      expect(none.body.pagination.total_items).to.equal(3);
    });

    it('filters by id, in the order asked for, and by name', async () => {
      const theirs = await create({ name: 'Find me' }, other);
      const [a, b] = [await create({ name: 'Find me' }), await create({ name: 'find_me' })];
      const ids = [b.id, theirs.id, 'no-uuid', a.id.toUpperCase()]
        .map((id) => `id=${id}`)
        .join('&');
      const byId = await manage<Page>(`GET /proxies?${ids}`);
      expect(byId.body.data).to.deep.equal([b, a]);
      expect(byId.body.pagination.total_items).to.equal(2);
      const named = async (query: string) => {
        const { body } = await manage<Page>(`GET /proxies?${query}`);
        return body.data.map(({ id }) => id);
      };
      expect(await named('name=FIND')).to.deep.equal([b.id, a.id]);
      expect(await named('name=f*me')).to.deep.equal([b.id, a.id]);
      expect(await named('name=d_m')).to.deep.equal([b.id]);
      expect(await named(`name=find&id=${a.id}`)).to.deep.equal([a.id]);
      expect(await named('name=me*')).to.deep.equal([]);
    });

    for (const query of ['size=101', 'page=0', 'id[]=x', 'name=a&name=b']) {
      it(`refuses ${query}`, async () => {
        expect((await manage(`GET /proxies?${query}`)).status).to.equal(400);
      });
    }

    it('refuses a page that would be over 16 MiB', async () => {
      const tenant = await server.addTenant('Hoarder');
      const { id } = await create({}, tenant);
      await server.pool.query(
        `INSERT INTO proxies (tenant_id, id, name, destination_url, key_sealed, request_transform)
         SELECT tenant_id, gen_random_uuid(), name, destination_url, key_sealed,
           jsonb_build_object('code', repeat('😀', 50000), 'code_version', id)
         FROM proxies, generate_series(1, 99) WHERE id = $1`,
        [id],
      );
      const large = await manage<JsonObject>('GET /proxies?size=100', undefined, tenant);
      expect(large.status).to.equal(400);
      expect(large.body.errors).to.have.all.keys('size');
    });
  });

  describe('GET /proxies/{id}', () => {
    it('leaves an application out that is gone or has expired, and goes on without it', async () => {
      const applications = [await createApplication(), await createApplication()];
      const [deleted, expired] = applications.map(({ id }) => id);
      const created = await Promise.all(
        applications.map(({ id }) => create({ application: { id } })),
      );
      expect((await manage(`DELETE /applications/${deleted}`)).status).to.equal(204);
      await server.pool.query('UPDATE applications SET expires_at = clock_now() WHERE id = $1', [
        expired,
      ]);
      for (const { application_id: _, ...rest } of created) {
        const { status, body } = await manage(`GET /proxies/${rest.id}`);
        expect(status).to.equal(200);
        expect(body).to.deep.equal(rest);
        const listed = await manage<Page>(`GET /proxies?id=${rest.id}`);
        expect(listed.body.data).to.deep.equal([rest]);
      }
    });

    it('finds nothing of another tenant, and no id that is none', async () => {
      const { id } = await create();
      expect((await manage(`GET /proxies/${id}`, undefined, other)).status).to.equal(404);
      expect((await manage(`GET /proxies/${id.toUpperCase()}`)).body.id).to.equal(id);
      for (const none of ['7', randomUUID(), "'%20OR%201=1--"]) {
        expect((await manage(`GET /proxies/${none}`)).status).to.equal(404);
      }
    });
  });

  describe('DELETE /proxies/{id}', () => {
    it('answers 204 once, then 404, and nothing to another tenant', async () => {
      const [made, kept] = [await create(), await create()];
      const { id } = made;
      expect((await manage(`DELETE /proxies/${id}`, undefined, other)).status).to.equal(404);
      expect(await hashesOf(made)).to.have.lengthOf(1);
      const deleted = await manage(`DELETE /proxies/${id}`);
      expect(deleted.status).to.equal(204);
      expect(deleted.text).to.equal('');
      expect((await manage(`DELETE /proxies/${id}`)).status).to.equal(404);
      expect((await manage(`GET /proxies/${id}`)).status).to.equal(404);
      // Its key leads nowhere; those of other proxies stay.
      expect(await hashesOf(made)).to.deep.equal([]);
      expect(await hashesOf(kept)).to.have.lengthOf(1);
    });
  });
});
