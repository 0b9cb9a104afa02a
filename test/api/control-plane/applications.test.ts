import { expect } from 'chai';
import type { Application } from '../../../shared/api/applications.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import type { JsonObject } from '../../support/http-call.ts';
import { type ApplicationClient, applicationClient, ISO_UTC, rule } from './application-client.ts';

interface Page {
  pagination: JsonObject;
  data: Application[];
}

describe('applications', () => {
  let server: TestControlPlane;
  let as: ApplicationClient['as'];
  let manage: ApplicationClient['manage'];
  let create: ApplicationClient['create'];

  before(async () => {
    server = await startTestControlPlane();
    ({ as, manage, create } = applicationClient(server));
  });
  after(() => server.stop());

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
      const unknown = await manage<JsonObject>('GET /applications?type=public&type=privat');
      expect(unknown.status).to.equal(400);
      expect(unknown.body.errors).to.deep.equal({
        type: ['Must be one of public, private, management'],
      });
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
