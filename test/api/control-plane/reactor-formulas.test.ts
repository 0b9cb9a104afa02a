import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { ReactorFormula } from '../../../shared/api/reactor-formulas.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

interface Page {
  pagination: JsonObject;
  data: ReactorFormula[];
}

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const CODE = 'module.exports = async function (req) { return { raw: req.args }; };';
const PAYMENT = { name: 'Charge', type: 'private', code: CODE };
const DECLARED = {
  configuration: [{ name: 'API_KEY', description: 'of the service', type: 'string' }],
  request_parameters: [
    { name: 'card.number', description: null, type: 'string' },
    { name: 'amount', type: 'number', optional: true },
  ],
};

describe('reactor formulas', () => {
  let server: TestControlPlane;
  let other: TestTenant;

  before(async () => {
    server = await startTestControlPlane();
    other = await server.addTenant('Other');
  });
  after(() => server.stop());

  function manage<T = ReactorFormula>(
    line: string,
    json?: unknown,
    { managementKey: key } = server.tenant,
  ): Promise<Answer<T>> {
    return call<T>(server.baseUrl, line, { key, ...(json === undefined ? {} : { json }) });
  }
  async function create(over: JsonObject = {}, tenant = server.tenant): Promise<ReactorFormula> {
    const made = await manage('POST /reactor-formulas', { ...PAYMENT, ...over }, tenant);
    expect(made.status, made.text).to.equal(201);
    return made.body;
  }
  async function codeVersion(id: string): Promise<string | undefined> {
    const { rows } = await server.pool.query<{ code_version: string }>(
      'SELECT code_version FROM reactor_formulas WHERE id = $1',
      [id],
    );
    return rows[0]?.code_version;
  }

  describe('POST /reactor-formulas', () => {
    it('answers the formula with its declarations in full', async () => {
      const created = await create({
        ...DECLARED,
        description: 'Two\nlines',
        icon: 'data:image/png;base64,AAAA',
      });
      expect(created).to.have.all.keys(
        ...['id', 'type', 'status', 'name', 'description', 'icon', 'code', 'configuration'],
        ...['request_parameters', 'created_by', 'created_at'],
      );
      expect(created).to.include({ type: 'private', status: 'verified', code: CODE });
      expect(created.id).to.match(UUID_V4);
      expect(created.created_by).to.equal(server.tenant.managementApplicationId);
      expect(created.configuration).to.deep.equal(DECLARED.configuration);
      expect(created.request_parameters).to.deep.equal([
        { name: 'card.number', type: 'string', optional: false },
        { name: 'amount', type: 'number', optional: true },
      ]);
    });

    it('declares nothing unless told', async () => {
      const created = await create({ configuration: null, description: null, icon: null });
      expect(created).to.deep.include({ configuration: [], request_parameters: [] });
      expect(created).not.to.have.any.keys('description', 'icon');
    });

    it('takes an id of the caller, once in each tenant', async () => {
      const id = randomUUID();
      expect((await create({ id: id.toUpperCase() })).id).to.equal(id);
      const again = await manage<JsonObject>('POST /reactor-formulas', { ...PAYMENT, id });
      expect(again.status).to.equal(409);
      expect(again.text).not.to.contain(id);
      expect((await create({ id }, other)).id).to.equal(id);
    });

    it('takes nothing from the body but the documented members', async () => {
      const own = randomUUID();
      const created = await create({
        ...{ tenant_id: other.id, created_by: own, code_version: own },
        ...{ status: 'coming_soon', created_at: '2001-01-01T00:00:00Z' },
      });
      expect(created.created_by).to.equal(server.tenant.managementApplicationId);
      expect(created.status).to.equal('verified');
      expect(new Date(created.created_at).getUTCFullYear()).to.be.greaterThan(2001);
      expect(
        (await manage(`GET /reactor-formulas/${created.id}`, undefined, other)).status,
      ).to.equal(404);
    });

    it('creates no official formula', async () => {
      const { status } = await manage('POST /reactor-formulas', { ...PAYMENT, type: 'official' });
      expect(status).to.equal(403);
    });
  });

  describe('GET /reactor-formulas', () => {
    const names = (answer: Answer<Page>) => answer.body.data.map(({ name }) => name);

    it('lists newest first, in pages', async () => {
      for (const name of ['page 1', 'page 2', 'page 3']) await create({ name });
      const first = await manage<Page>('GET /reactor-formulas?name=page&size=2');
      const second = await manage<Page>('GET /reactor-formulas/?name=page&size=2&page=2');
      expect([...names(first), ...names(second)]).to.deep.equal(['page 3', 'page 2', 'page 1']);
      expect(first.body.pagination).to.deep.equal({
        ...{ total_items: 3, page_number: 1, page_size: 2, total_pages: 2 },
      });
      const past = await manage<Page>('GET /reactor-formulas?name=page&page=9');
      expect(past.body.data).to.deep.equal([]);
      expect(past.body.pagination.total_items).to.equal(3);
    });

    it('filters by name: anywhere, or by a pattern with *', async () => {
      for (const name of ['Wild Card', 'wildfire', '100%_done', '100 done', 'back\\slash']) {
        await create({ name });
      }
      const found = async (name: string) => {
        const query = `name=${encodeURIComponent(name)}&size=100`;
        return names(await manage<Page>(`GET /reactor-formulas?${query}`)).sort();
      };
      expect(await found('WILD')).to.deep.equal(['Wild Card', 'wildfire']);
      expect(await found('wild*')).to.deep.equal(['Wild Card', 'wildfire']);
      expect(await found('*card')).to.deep.equal(['Wild Card']);
      expect(await found('card*')).to.deep.equal([]);
      expect(await found('w*d*r*')).to.deep.equal(['Wild Card', 'wildfire']);
      expect(await found('0%_d')).to.deep.equal(['100%_done']);
      expect(await found('100_done')).to.deep.equal([]);
      expect(await found('k\\s')).to.deep.equal(['back\\slash']);
      expect(await found("'; DROP TABLE reactor_formulas; --")).to.deep.equal([]);
    });

    for (const query of [
      'name=a&name=b',
      `name=${'x'.repeat(201)}`,
      'name=%00',
      'size=101',
      'page=0',
    ]) {
      it(`refuses ${query.slice(0, 20)}`, async () => {
        expect((await manage(`GET /reactor-formulas?${query}`)).status).to.equal(400);
      });
    }

    it('refuses a page that would be over 16 MiB', async () => {
      const tenant = await server.addTenant('Hoarder');
      const { id } = await create({ code: CODE.padEnd(50_000) }, tenant);
      await server.pool.query(
        `INSERT INTO reactor_formulas (tenant_id, id, type, status, name, code, code_version, icon)
         SELECT tenant_id, gen_random_uuid(), type, status, name, repeat('😀', 50000), code_version,
           repeat('A', 50000) FROM reactor_formulas, generate_series(1, 99) WHERE id = $1`,
        [id],
      );
      const page = (size: number) =>
        manage<JsonObject>(`GET /reactor-formulas?size=${size}`, undefined, tenant);
      const large = await page(100);
      expect(large.status).to.equal(400);
      expect(large.body.errors).to.have.all.keys('size');
      expect((await page(10)).status).to.equal(200);
    });
  });

  describe('PUT /reactor-formulas/{id}', () => {
    it('replaces everything but the id and the type', async () => {
      const { id, created_at } = await create({ ...DECLARED, description: 'old' });
      const json = { id: randomUUID(), name: 'New', code: 'module.exports = () => ({});' };
      const { status, body } = await manage(`PUT /reactor-formulas/${id}`, json);
      expect(status).to.equal(200);
      expect(body).to.deep.include({ id, name: 'New', code: json.code, created_at });
      expect(body).to.deep.include({ type: 'private', configuration: [], request_parameters: [] });
      expect(body).not.to.have.property('description');
      expect(body.modified_by).to.equal(server.tenant.managementApplicationId);
      expect((await manage(`GET /reactor-formulas/${id}`)).body).to.deep.equal(body);
    });

    it('gives changed code a version of its own, and only that', async () => {
      const { id } = await create();
      const before = await codeVersion(id);
      await manage(`PUT /reactor-formulas/${id}`, { ...PAYMENT, name: 'Renamed' });
      expect(await codeVersion(id)).to.equal(before);
      await manage(`PUT /reactor-formulas/${id}`, { ...PAYMENT, code: `${CODE} ` });
      const changed = await codeVersion(id);
      expect(changed).not.to.equal(before);
      await manage(`PUT /reactor-formulas/${id}`, PAYMENT);
      expect([before, changed]).not.to.include(await codeVersion(id));
    });

    it('does not find what is not there, and makes nothing official', async () => {
      const { id } = await create();
      expect((await manage(`PUT /reactor-formulas/${randomUUID()}`, PAYMENT)).status).to.equal(404);
      expect((await manage(`PUT /reactor-formulas/${id}`, PAYMENT, other)).status).to.equal(404);
      const official = { ...PAYMENT, type: 'official' };
      expect((await manage(`PUT /reactor-formulas/${id}`, official)).status).to.equal(403);
    });

    it('accepts declarations that reactors in use do not fit, and tells their next writer', async () => {
      const { id } = await create();
      const made = await manage<{ id: string }>('POST /reactors', {
        ...{ name: 'R', formula: { id }, configuration: {} },
      });
      const declared = { ...PAYMENT, configuration: [{ name: 'KEY', type: 'string' }] };
      expect((await manage(`PUT /reactor-formulas/${id}`, declared)).status).to.equal(200);
      const path = `PUT /reactors/${made.body.id}`;
      const lacking = await manage<JsonObject>(path, { name: 'R', configuration: {} });
      expect(lacking.body.errors).to.have.all.keys('configuration.KEY');
      const fitting = { name: 'R', configuration: { KEY: 'x' } };
      expect((await manage(path, fitting)).status).to.equal(200);
    });

    it('records a change of the formula', async () => {
      const { id } = await create();
      await manage(`PUT /reactor-formulas/${id}`, PAYMENT);
      await manage(`DELETE /reactor-formulas/${id}`);
      const { rows } = await server.pool.query(
        'SELECT tenant_id FROM config_changes WHERE kind = $1 AND id = $2',
        ['reactor_formula', id],
      );
      expect(rows).to.deep.equal(Array(3).fill({ tenant_id: server.tenant.id }));
    });
  });

  describe('DELETE /reactor-formulas/{id}', () => {
    it('answers 204 once, then 404', async () => {
      const { id } = await create();
      expect((await manage(`DELETE /reactor-formulas/${id}`, undefined, other)).status).to.equal(
        404,
      );
      expect((await manage(`DELETE /reactor-formulas/${id}`)).status).to.equal(204);
      expect((await manage(`DELETE /reactor-formulas/${id}`)).status).to.equal(404);
      expect((await manage(`GET /reactor-formulas/${id}`)).status).to.equal(404);
    });

    it('leaves a formula that a reactor of this tenant uses', async () => {
      const { id } = await create();
      await create({ id }, other);
      const { body } = await manage<{ id: string }>('POST /reactors', {
        ...{ name: 'R', formula: { id }, configuration: {} },
      });
      expect((await manage(`DELETE /reactor-formulas/${id}`)).status).to.equal(409);
      expect((await manage(`DELETE /reactor-formulas/${id}`, undefined, other)).status).to.equal(
        204,
      );
      await manage(`DELETE /reactors/${body.id}`);
      expect((await manage(`DELETE /reactor-formulas/${id}`)).status).to.equal(204);
    });

    it('never leaves a reactor without its formula, however they race', async () => {
      for (let round = 0; round < 10; round += 1) {
        const { id } = await create();
        const json = { name: 'R', formula: { id }, configuration: {} };
        const [made, deleted] = await Promise.all([
          manage<{ id: string }>('POST /reactors', json),
          manage(`DELETE /reactor-formulas/${id}`),
        ]);
        expect([201, 400]).to.include(made.status);
        expect(deleted.status).to.equal(made.status === 201 ? 409 : 204);
      }
    });
  });
});
