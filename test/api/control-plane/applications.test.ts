import { expect } from 'chai';
import type { Application } from '../../../shared/api/applications.ts';
import { isWellFormedApiKey } from '../../../shared/api-keys.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { type Answer, type Call, call, type JsonObject } from '../../support/http-call.ts';

interface Page {
  pagination: JsonObject;
  data: Application[];
}

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ISO_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const CHECKOUT = { name: 'Checkout', type: 'private', permissions: ['token:create'] };

describe('applications', () => {
  let server: TestControlPlane;

  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());

  function as<T = Application>(key: string, line: string, rest: Call = {}): Promise<Answer<T>> {
    return call<T>(server.baseUrl, line, { key, ...rest });
  }
  function manage<T = Application>(line: string, json?: unknown): Promise<Answer<T>> {
    return as<T>(server.tenant.managementKey, line, json === undefined ? {} : { json });
  }
  async function create(over: JsonObject = {}): Promise<Application & { key: string }> {
    const made = await manage('POST /applications', { ...CHECKOUT, ...over });
    const { status, body, headers } = made;
    expect([status, headers.get('location')]).to.deep.equal([201, `/applications/${body.id}`]);
    return { ...body, key: body.key ?? '' };
  }

  describe('POST /applications', () => {
    it('answers the application with a key that works', async () => {
      const created = await create({ rules: [] });
      expect(created).to.have.all.keys(
        ...['id', 'tenant_id', 'name', 'key', 'type', 'permissions', 'rules'],
        ...['created_by', 'created_at'],
      );
      expect(created.id).to.match(UUID_V4);
      expect(created.tenant_id).to.equal(server.tenant.id);
      expect(created.created_by).to.equal(server.tenant.managementApplicationId);
      expect(created.created_at).to.match(ISO_UTC);
      expect(isWellFormedApiKey(created.key)).to.equal(true);
      const self = await as(created.key, 'GET /applications/key');
      expect(self.status).to.equal(200);
      expect(self.body.id).to.equal(created.id);
    });

    it('keeps only a hash of the key', async () => {
      const { key } = await create();
      const { rows } = await server.pool.query<{ text: string }>(
        `SELECT a::text || coalesce((SELECT string_agg(k::text, '') FROM application_keys k), '')
           || coalesce((SELECT string_agg(d::text, '') FROM key_directory d), '') AS text
         FROM applications a`,
      );
      const stored = rows.map((row) => row.text).join('');
      const secret = key.slice('key_'.length);
      expect(stored).not.to.contain(secret);
      expect(stored).not.to.contain(Buffer.from(secret).toString('hex'));
    });

    it('normalises access rules', async () => {
      const { rules } = await create({
        permissions: null,
        rules: [
          {
            description: null,
            priority: 2,
            container: '/PCI/High/',
            transform: 'mask',
            permissions: ['token:read'],
            unknown: 1,
          },
        ],
      });
      expect(rules).to.deep.equal([
        { priority: 2, container: '/pci/high/', transform: 'mask', permissions: ['token:read'] },
      ]);
    });

    it('takes nothing from the body but the documented members', async () => {
      const own = '00000000-0000-4000-8000-000000000000';
      const created = await create({
        id: own,
        key: 'key_chosen',
        tenant_id: own,
        created_by: own,
        created_at: '2001-01-01T00:00:00Z',
      });
      expect(created.id).not.to.equal(own);
      expect(created.key).not.to.equal('key_chosen');
      expect(created.tenant_id).to.equal(server.tenant.id);
      expect(created.created_by).to.equal(server.tenant.managementApplicationId);
      expect(new Date(created.created_at).getUTCFullYear()).to.be.greaterThan(2001);
    });

    it('answers expires_at in UTC and refuses the past', async () => {
      const { expires_at } = await create({ expires_at: '2099-01-01T00:00:00+02:00' });
      expect(expires_at).to.equal('2098-12-31T22:00:00.000Z');
      for (const past of ['2020-01-01T00:00:00Z', new Date().toISOString()]) {
        const refused = await manage<JsonObject>('POST /applications', {
          ...CHECKOUT,
          expires_at: past,
        });
        expect(refused.status).to.equal(400);
        expect(refused.body.errors).to.have.all.keys('expires_at');
      }
    });

    const refused: [string, JsonObject, string][] = [
      ['a missing name', { name: undefined }, 'name'],
      ['a name that is null', { name: null }, 'name'],
      ['an empty name', { name: '' }, 'name'],
      ['a name of 201 characters', { name: 'x'.repeat(201) }, 'name'],
      ['a name of two lines', { name: 'a\nb' }, 'name'],
      ['a name with NUL, which Postgres cannot hold', { name: 'a\0b' }, 'name'],
      ['a name that is a number', { name: 7 }, 'name'],
      ['an unknown type', { type: 'expiring' }, 'type'],
      ['an inherited name as type', { type: 'constructor' }, 'type'],
      ['no permission at all', { permissions: [] }, 'permissions'],
      ['an unknown permission', { permissions: ['token:steal'] }, 'permissions'],
      ['a permission the type may not hold', { permissions: ['tenant:delete'] }, 'permissions'],
      ['permissions that are text', { permissions: 'token:read' }, 'permissions'],
      [
        'an endless list of permissions',
        { permissions: Array(51).fill('token:read') },
        'permissions',
      ],
      [
        'a rule without container',
        { rules: [rule({ container: undefined })] },
        'rules.0.container',
      ],
      ['a bad container', { rules: [rule({ container: '/a//b/' })] }, 'rules.0.container'],
      ['an unknown transform', { rules: [rule({ transform: 'clear' })] }, 'rules.0.transform'],
      ['priority 0', { rules: [rule({ priority: 0 })] }, 'rules.0.priority'],
      ['a priority twice', { rules: [rule(), rule()] }, 'rules.1.priority'],
      ['conditions', { rules: [rule({ conditions: [{}] })] }, 'rules.0.conditions'],
      [
        'a management permission in a rule',
        { rules: [rule({ permissions: ['tenant:read'] })] },
        'rules.0.permissions',
      ],
      ['an expiry that is no date', { expires_at: 'tomorrow' }, 'expires_at'],
      ['an expiry of a megabyte', { expires_at: '1'.repeat(1_000_000) }, 'expires_at'],
    ];
    for (const [what, over, path] of refused) {
      it(`refuses ${what}`, async () => {
        const json = { ...CHECKOUT, ...over };
        const { status, body } = await manage<JsonObject>('POST /applications', json);
        expect(status).to.equal(400);
        expect(body.title).to.equal('One or more validation errors occurred.');
        expect(body.errors).to.have.all.keys(path);
      });
    }

    it('refuses rules on a management application', async () => {
      const json = { name: 'x', type: 'management', rules: [rule()] };
      const { status, body } = await manage<JsonObject>('POST /applications', json);
      expect(status).to.equal(400);
      expect(body.errors).to.have.property('rules');
    });

    it('names every wrong member and repeats none of their values', async () => {
      const json = { name: 4242424242424242, type: 'sneaky-value', permissions: { a: 'b' } };
      const { body, text } = await manage<JsonObject>('POST /applications', json);
      expect(body.errors).to.have.all.keys('name', 'type', 'permissions');
      expect(body.errors)
        .to.have.property('name')
        .that.deep.equals(['Deserialization error, invalid input.']);
      expect(text).not.to.match(/4242|sneaky/);
    });
  });

  describe('GET /applications', () => {
    it('lists newest first, without keys, in pages', async () => {
      const made = [await create(), await create(), await create()];
      const first = await manage<Page>('GET /applications?size=2');
      const second = await manage<Page>('GET /applications/?size=2&page=2');
      const ids = [...first.body.data, ...second.body.data].map(({ id }) => id);
      expect(ids.slice(0, 3)).to.deep.equal(made.map(({ id }) => id).toReversed());
      expect(first.body.pagination).to.include({ page_number: 1, page_size: 2 });
      expect(first.text).not.to.contain('"key"');
    });

    it('answers a page past the end and size=0 with right totals', async () => {
      const total = (await manage<Page>('GET /applications')).body.pagination.total_items;
      const past = await manage<Page>('GET /applications?page=9999');
      expect(past.status).to.equal(200);
      expect(past.body.data).to.deep.equal([]);
      expect(past.body.pagination).to.include({ total_items: total, page_number: 9999 });
      const none = await manage<Page>('GET /applications?size=0');
      expect(none.body).to.deep.equal({
        pagination: { total_items: total, page_number: 1, page_size: 0, total_pages: 0 },
        data: [],
      });
    });

    it('filters by id, in the order asked for', async () => {
      const [a, b, c] = [await create(), await create(), await create()];
      const ids = [b.id, a.id, 'not-a-uuid', c.id.toUpperCase(), b.id];
      const query = ids.map((id) => `id=${id}`).join('&');
      const { body } = await manage<Page>(`GET /applications?${query}`);
      expect(body.data.map(({ id }) => id)).to.deep.equal([b.id, a.id, c.id]);
      expect(body.pagination.total_items).to.equal(3);
      const none = await manage<Page>('GET /applications?id=not-a-uuid');
      expect(none.body.data).to.deep.equal([]);
    });

    it('filters by type', async () => {
      const { id } = await create({ type: 'public' });
      const found = await manage<Page>('GET /applications?type=public&type=management&size=100');
      const types = new Set(found.body.data.map(({ type }) => type));
      expect([...types].sort()).to.deep.equal(['management', 'public']);
      expect(found.body.data.map((one) => one.id)).to.contain(id);
      expect((await manage<Page>('GET /applications?type=other')).body.data).to.deep.equal([]);
    });

    for (const query of [
      'page=0',
      'page=1.5',
      'page=abc',
      'size=101',
      'size=-1',
      'page=1&page=2',
    ]) {
      it(`refuses ${query}`, async () => {
        const { status, body } = await manage<JsonObject>(`GET /applications?${query}`);
        expect(status).to.equal(400);
        expect(body.errors).to.have.property(query.slice(0, 4));
      });
    }
  });

  describe('GET /applications/{id}', () => {
    it('answers without key, whatever the case of the id', async () => {
      const { key, ...application } = await create();
      const { status, body } = await manage(`GET /applications/${application.id.toUpperCase()}`);
      expect(status).to.equal(200);
      expect(body).to.deep.equal(application);
      expect(key).to.be.a('string');
    });

    for (const id of ['7', '{00000000-0000-4000-8000-000000000000}', "'%20OR%201=1--", 'keys']) {
      it(`does not find ${id}`, async () => {
        expect((await manage(`GET /applications/${id}`)).status).to.equal(404);
      });
    }
  });

  describe('PUT /applications/{id}', () => {
    it('replaces name, permissions and rules, and never the type', async () => {
      const { id, key } = await create({ rules: [rule()] });
      const json = {
        name: 'Renamed',
        type: 'management',
        permissions: ['token:read', 'token:read'],
      };
      const { status, body } = await manage(`PUT /applications/${id}`, json);
      expect(status).to.equal(200);
      expect(body).to.include({ name: 'Renamed', type: 'private' });
      expect(body.permissions).to.deep.equal(['token:read']);
      expect(body.rules).to.deep.equal([]);
      expect(body.modified_by).to.equal(server.tenant.managementApplicationId);
      expect(body.modified_at).to.match(ISO_UTC);
      expect(body).not.to.have.property('key');
      expect((await as(key, 'GET /applications/key')).body.name).to.equal('Renamed');
    });

    it('keeps expires_at when it is absent and clears it when it is null', async () => {
      const { id, permissions } = await create({ expires_at: '2099-01-01' });
      const json = { name: 'x', permissions };
      const kept = await manage(`PUT /applications/${id}`, json);
      expect(kept.body.expires_at).to.equal('2099-01-01T00:00:00.000Z');
      const cleared = await manage(`PUT /applications/${id}`, { ...json, expires_at: null });
      expect(cleared.body).not.to.have.property('expires_at');
      const past = await manage(`PUT /applications/${id}`, { ...json, expires_at: '2020-01-01' });
      expect(past.status).to.equal(400);
    });

    it('judges permissions by the type the application has', async () => {
      const { id } = await create({ type: 'public' });
      const json = { name: 'x', type: 'private', permissions: ['token:read'] };
      const { status, body } = await manage<JsonObject>(`PUT /applications/${id}`, json);
      expect(status).to.equal(400);
      expect(body.errors).to.have.all.keys('permissions');
    });

    it('records a change of configuration, and none when nothing was changed', async () => {
      const { id, permissions } = await create();
      const version = async () => {
        const { rows } = await server.pool.query<{ config_version: string; changes: number }>(
          `SELECT config_version, (SELECT count(*)::integer FROM config_changes) AS changes
           FROM tenants WHERE id = $1`,
          [server.tenant.id],
        );
        return rows[0];
      };
      const before = await version();
      await manage(`PUT /applications/${id}`, { name: 'x', permissions: ['no:such'] });
      expect(await version()).to.deep.equal(before);
      await manage(`PUT /applications/${id}`, { name: 'x', permissions });
      const after = await version();
      expect(after?.config_version).not.to.equal(before?.config_version);
      expect(after?.changes).to.equal((before?.changes ?? 0) + 1);
    });
  });

  describe('DELETE /applications/{id}', () => {
    it('answers 204 once, then 404, and the key is refused', async () => {
      const { id, key } = await create();
      const deleted = await manage(`DELETE /applications/${id}`);
      expect(deleted.status).to.equal(204);
      expect(deleted.text).to.equal('');
      expect((await manage(`DELETE /applications/${id}`)).status).to.equal(404);
      expect((await manage(`GET /applications/${id}`)).status).to.equal(404);
      expect((await as(key, 'GET /applications/key')).status).to.equal(401);
    });

    it('leaves nothing of its keys', async () => {
      const { id } = await create();
      await manage(`DELETE /applications/${id}`);
      const { rows } = await server.pool.query<{ left: number }>(
        `SELECT (SELECT count(*) FROM application_keys WHERE application_id = $1)::integer
              + (SELECT count(*) FROM key_directory WHERE id = $1)::integer AS left`,
        [id],
      );
      expect(rows[0]?.left).to.equal(0);
    });
  });

  describe('POST /applications/{id}/regenerate', () => {
    it('answers a new key and stops the old one at once', async () => {
      const { id, key } = await create();
      const form = { 'content-type': 'application/x-www-form-urlencoded' };
      const { managementKey } = server.tenant;
      const line = `POST /applications/${id}/regenerate`;
      const { status, body } = await as(managementKey, line, { headers: form });
      expect(status).to.equal(200);
      expect(body.key).not.to.equal(key);
      expect((await as(key, 'GET /applications/key')).status).to.equal(401);
      expect((await as(body.key ?? '', 'GET /applications/key')).body.id).to.equal(id);
    });

    it('leaves exactly one key when asked many times at once', async () => {
      const { id } = await create();
      const line = `POST /applications/${id}/regenerate`;
      const answers = await Promise.all(Array.from({ length: 8 }, () => manage(line)));
      const keys = answers.filter(({ status }) => status === 200).map(({ body }) => body.key ?? '');
      expect(keys).to.have.length.greaterThan(0);
      const statuses = await Promise.all(
        keys.map(async (key) => (await as(key, 'GET /applications/key')).status),
      );
      expect(statuses.filter((status) => status === 200)).to.have.length(1);
    });

    it('may be asked for the own application', async () => {
      const { key } = await create({ type: 'management', permissions: ['application:update'] });
      const { id } = (await as(key, 'GET /applications/key')).body;
      const { status, body } = await as(key, `POST /applications/${id}/regenerate`);
      expect(status).to.equal(200);
      expect((await as(key, 'GET /applications/key')).status).to.equal(401);
      expect((await as(body.key ?? '', 'GET /applications/key')).status).to.equal(200);
    });
  });

  describe('an expired application', () => {
    it('is gone, and so is its key, by the clock of the database', async () => {
      const { id, key } = await create({ expires_at: '2099-01-01' });
      await server.pool.query('UPDATE applications SET expires_at = clock_now() WHERE id = $1', [
        id,
      ]);
      expect((await as(key, 'GET /applications/key')).status).to.equal(401);
      for (const line of [
        `GET /applications/${id}`,
        `DELETE /applications/${id}`,
        `POST /applications/${id}/regenerate`,
      ]) {
        expect((await manage(line)).status, line).to.equal(404);
      }
      const json = { name: 'x', permissions: ['token:read'], expires_at: null };
      expect((await manage(`PUT /applications/${id}`, json)).status).to.equal(404);
      const { body } = await manage<Page>(`GET /applications?id=${id}`);
      expect(body.pagination.total_items).to.equal(0);
    });
  });
});

function rule(over: JsonObject = {}): JsonObject {
  const whole = { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] };
  return { ...whole, ...over };
}
