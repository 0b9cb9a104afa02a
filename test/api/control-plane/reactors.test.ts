import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Application } from '../../../shared/api/applications.ts';
import type { ReactorFormula } from '../../../shared/api/reactor-formulas.ts';
import type { Reactor } from '../../../shared/api/reactors.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

interface Page {
  pagination: JsonObject;
  data: Reactor[];
}

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const CODE = 'module.exports = function (req) { return { raw: req.args }; };';
const OWN_CODE = { name: 'Own', code: CODE };

describe('reactors', () => {
  let server: TestControlPlane;
  let other: TestTenant;
  let formula: ReactorFormula;

  before(async () => {
    server = await startTestControlPlane();
    other = await server.addTenant('Other');
    formula = await createFormula();
  });
  after(() => server.stop());

  function manage<T = Reactor>(
    line: string,
    json?: unknown,
    { managementKey: key } = server.tenant,
  ): Promise<Answer<T>> {
    return call<T>(server.baseUrl, line, { key, ...(json === undefined ? {} : { json }) });
  }
  async function createFormula(tenant = server.tenant): Promise<ReactorFormula> {
    const json = {
      ...{ name: 'Formula', type: 'private', code: CODE },
      configuration: [
        { name: 'KEY', type: 'string' },
        { name: 'RETRIES', type: 'number' },
        { name: 'LIVE', type: 'boolean' },
      ],
    };
    const made = await manage<ReactorFormula>('POST /reactor-formulas', json, tenant);
    expect(made.status).to.equal(201);
    expect(made.headers.get('location')).to.equal(`/reactor-formulas/${made.body.id}`);
    return made.body;
  }
  async function createApplication(over: JsonObject = {}, tenant = server.tenant) {
    const json = { name: 'A', type: 'private', permissions: ['token:create'], ...over };
    const { key: _, ...shown } = (await manage<Application>('POST /applications', json, tenant))
      .body;
    return shown;
  }
  const fitting = (over: JsonObject = {}): JsonObject => ({
    ...{ name: 'Charge', formula: { id: formula.id } },
    configuration: { KEY: 'sk-canary-1', RETRIES: '3', LIVE: 'false' },
    ...over,
  });
  async function create(json: JsonObject = OWN_CODE, tenant = server.tenant): Promise<Reactor> {
    const made = await manage('POST /reactors', json, tenant);
    expect(made.status, made.text).to.equal(201);
    expect(made.headers.get('location')).to.equal(`/reactors/${made.body.id}`);
    return made.body;
  }

  describe('POST /reactors', () => {
    it('answers the reactor with its formula and application in it', async () => {
      const application = await createApplication();
      const created = await create(fitting({ application: { id: application.id } }));
      expect(created).to.have.all.keys(
        ...['id', 'tenant_id', 'name', 'formula', 'application', 'configuration'],
        ...['created_by', 'created_at'],
      );
      expect(created.id).to.match(UUID_V4);
      expect(created.tenant_id).to.equal(server.tenant.id);
      expect(created.created_by).to.equal(server.tenant.managementApplicationId);
      expect(created.formula).to.deep.equal(formula);
      expect(created.application).to.deep.equal(application);
      expect(created.configuration).to.deep.equal(fitting().configuration);
      expect((await manage(`GET /reactors/${created.id}`)).body).to.deep.equal(created);
    });

    it('takes code of its own, with any configuration or none', async () => {
      const bare = await create();
      expect(bare).to.include({ name: 'Own', code: CODE });
      expect(bare.configuration).to.deep.equal({});
      expect(bare).not.to.have.any.keys('formula', 'application', 'debug_until');
      const configuration = { ANY_name: 'x', 'with-dash': null, toString: 'own' };
      const configured = await create({ ...OWN_CODE, configuration, formula: null });
      expect(configured.configuration).to.deep.equal(configuration);
    });

    it('keeps the configuration sealed', async () => {
      const { id } = await create(fitting());
      const { rows } = await server.pool.query<{ text: string; sealed: Buffer }>(
        'SELECT r::text AS text, configuration_sealed AS sealed FROM reactors r WHERE id = $1',
        [id],
      );
      expect(rows[0]?.text).not.to.contain('sk-canary');
      expect(rows[0]?.sealed.includes('sk-canary')).to.equal(false);
      const moved = await create();
      await server.pool.query('UPDATE reactors SET configuration_sealed = $2 WHERE id = $1', [
        ...[moved.id, rows[0]?.sealed],
      ]);
      const opened = await manage(`GET /reactors/${moved.id}`);
      expect(opened.status).to.equal(500);
      expect(opened.text).not.to.contain('sk-canary');
      await manage(`DELETE /reactors/${moved.id}`);
    });

    it('takes nothing from the body but the documented members', async () => {
      const own = randomUUID();
      const created = await create({
        ...OWN_CODE,
        ...{ id: own, tenant_id: other.id, created_by: own, code_version: own },
        ...{ debug_until: '2099-01-01T00:00:00Z', created_at: '2001-01-01T00:00:00Z' },
      });
      expect(created.id).not.to.equal(own);
      expect(created.tenant_id).to.equal(server.tenant.id);
      expect(created).not.to.have.property('debug_until');
    });

    it('acts as public and private applications only, never as a management one', async () => {
      const shared = await createApplication({ type: 'public' });
      const created = await create({ ...OWN_CODE, application: { id: shared.id.toUpperCase() } });
      expect(created.application?.id).to.equal(shared.id);
      const id = server.tenant.managementApplicationId;
      const json = { ...OWN_CODE, application: { id } };
      const { status, body } = await manage<JsonObject>('POST /reactors', json);
      expect(status).to.equal(400);
      expect(body.errors).to.have.all.keys('application.id');
    });

    it('knows no formula and no application of another tenant', async () => {
      const theirs = await createFormula(other);
      const made = await manage<JsonObject>(
        'POST /reactors',
        fitting({ formula: { id: theirs.id } }),
      );
      const absent = await manage<JsonObject>(
        'POST /reactors',
        fitting({ formula: { id: randomUUID() } }),
      );
      expect(made.status).to.equal(400);
      expect(made.text).to.equal(absent.text);
      const { id } = await createApplication({}, other);
      const acting = await manage<JsonObject>('POST /reactors', {
        ...OWN_CODE,
        application: { id },
      });
      expect(acting.status).to.equal(400);
      expect(acting.body.errors).to.have.all.keys('application.id');
    });
  });

  describe('GET /reactors', () => {
    it('lists newest first with all that is in them, in pages', async () => {
      const tenant = await server.addTenant('Lister');
      const made = [];
      for (let n = 0; n < 3; n += 1)
        made.push(await create({ ...OWN_CODE, name: `R${n}` }, tenant));
      const { body } = await manage<Page>('GET /reactors', undefined, tenant);
      expect(body.data).to.deep.equal(made.toReversed());
      const second = await manage<Page>('GET /reactors/?size=2&page=2', undefined, tenant);
      expect(second.body.data).to.deep.equal(made.slice(0, 1));
      expect(second.body.pagination).to.deep.equal({
        ...{ total_items: 3, page_number: 2, page_size: 2, total_pages: 2 },
      });
      const none = await manage<Page>('GET /reactors?size=0', undefined, tenant);
      expect(none.body.data).to.deep.equal([]);
      expect(none.body.pagination.total_items).to.equal(3);
    });

    it('filters by id, in the order asked for, and by name', async () => {
      const theirs = await create({ ...OWN_CODE, name: 'Find me' }, other);
      const [a, b] = [
        await create(fitting({ name: 'Find me' })),
        await create({ ...OWN_CODE, name: 'find_me' }),
      ];
      const ids = [b.id, theirs.id, 'no-uuid', a.id.toUpperCase()]
        .map((id) => `id=${id}`)
        .join('&');
      const byId = await manage<Page>(`GET /reactors?${ids}`);
      expect(byId.body.data).to.deep.equal([b, a]);
      expect(byId.body.pagination.total_items).to.equal(2);
      const named = async (query: string) => {
        const { body } = await manage<Page>(`GET /reactors?${query}`);
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
        expect((await manage(`GET /reactors?${query}`)).status).to.equal(400);
      });
    }

    it('refuses a page that would be over 16 MiB', async () => {
      const tenant = await server.addTenant('Hoarder');
      const { id } = await create(OWN_CODE, tenant);
      await server.pool.query(
        `INSERT INTO reactors (tenant_id, id, name, code, code_version)
         SELECT tenant_id, gen_random_uuid(), name, repeat('😀', 50000), code_version
         FROM reactors, generate_series(1, 99) WHERE id = $1`,
        [id],
      );
      const large = await manage<JsonObject>('GET /reactors?size=100', undefined, tenant);
      expect(large.status).to.equal(400);
      expect(large.body.errors).to.have.all.keys('size');
      expect((await manage('GET /reactors', undefined, tenant)).status).to.equal(200);
    });
  });

  describe('GET /reactors/{id}', () => {
    it('leaves an application out that is gone, and goes on without it', async () => {
      const { id } = await createApplication();
      const created = await create({ ...OWN_CODE, application: { id } });
      expect((await manage(`DELETE /applications/${id}`)).status).to.equal(204);
      const { status, body } = await manage(`GET /reactors/${created.id}`);
      expect(status).to.equal(200);
      expect(body).not.to.have.property('application');
      expect(body).to.deep.equal({ ...body, code: CODE });
      const listed = await manage<Page>(`GET /reactors?id=${created.id}`);
      expect(listed.body.data).to.deep.equal([body]);
    });

    it('finds nothing of another tenant, and no id that is none', async () => {
      const { id } = await create();
      expect((await manage(`GET /reactors/${id}`, undefined, other)).status).to.equal(404);
      expect((await manage(`GET /reactors/${id.toUpperCase()}`)).body.id).to.equal(id);
      for (const none of ['7', randomUUID(), "'%20OR%201=1--"]) {
        expect((await manage(`GET /reactors/${none}`)).status).to.equal(404);
      }
    });
  });

  describe('DELETE /reactors/{id}', () => {
    it('answers 204 once, then 404, and nothing to another tenant', async () => {
      const { id } = await create();
      expect((await manage(`DELETE /reactors/${id}`, undefined, other)).status).to.equal(404);
      const deleted = await manage(`DELETE /reactors/${id}`);
      expect(deleted.status).to.equal(204);
      expect(deleted.text).to.equal('');
      expect((await manage(`DELETE /reactors/${id}`)).status).to.equal(404);
      expect((await manage(`GET /reactors/${id}`)).status).to.equal(404);
    });
  });
});
