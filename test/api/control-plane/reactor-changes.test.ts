/** PUT and PATCH of reactors: what they replace, merge, keep, refuse, and that none is lost. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Application } from '../../../shared/api/applications.ts';
import type { Reactor } from '../../../shared/api/reactors.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

const CODE = 'module.exports = function (req) { return { raw: req.args }; };';
const OTHER_CODE = 'module.exports = async () => ({});';
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };

describe('changes of reactors', () => {
  let server: TestControlPlane;
  let other: TestTenant;
  let application: Application;
  let formulaId: string;

  before(async () => {
    server = await startTestControlPlane();
    other = await server.addTenant('Other');
    application = (
      await manage<Application>('POST /applications', {
        ...{ name: 'A', type: 'private', permissions: ['token:create'] },
      })
    ).body;
    const formula = await manage<{ id: string }>('POST /reactor-formulas', {
      ...{ name: 'F', type: 'private', code: CODE },
      configuration: [
        { name: 'KEY', type: 'string' },
        { name: 'LIVE', type: 'boolean' },
      ],
    });
    formulaId = formula.body.id;
  });
  after(() => server.stop());

  function manage<T = Reactor>(
    line: string,
    json?: unknown,
    { managementKey: key } = server.tenant,
  ): Promise<Answer<T>> {
    const headers: Record<string, string> = line.startsWith('PATCH') ? MERGE_PATCH : {};
    return call<T>(server.baseUrl, line, { key, headers, ...(json === undefined ? {} : { json }) });
  }
  async function ofFormula(over: JsonObject = {}): Promise<Reactor> {
    return create({
      ...{ formula: { id: formulaId }, application: { id: application.id } },
      configuration: { KEY: 'k-1', LIVE: 'true' },
      ...over,
    });
  }
  async function create(over: JsonObject = { code: CODE }): Promise<Reactor> {
    const made = await manage('POST /reactors', { name: 'R', ...over });
    expect(made.status, made.text).to.equal(201);
    return made.body;
  }
  const put = <T = Reactor>({ id }: Reactor, json: unknown) =>
    manage<T>(`PUT /reactors/${id}`, json);
  const patch = ({ id }: Reactor, json: unknown) =>
    manage<JsonObject>(`PATCH /reactors/${id}`, json);
  const get = async ({ id }: Reactor) => (await manage(`GET /reactors/${id}`)).body;
  async function codeVersion({ id }: Reactor): Promise<string | null | undefined> {
    const { rows } = await server.pool.query<{ code_version: string | null }>(
      'SELECT code_version FROM reactors WHERE id = $1',
      [id],
    );
    return rows[0]?.code_version;
  }

  describe('PUT /reactors/{id}', () => {
    it('replaces name, configuration and application, never the formula', async () => {
      const made = await ofFormula();
      const configuration = { KEY: 'k-2', LIVE: 'FALSE' };
      const json = { name: 'New', configuration, formula: { id: randomUUID() } };
      const { status, body } = await put(made, json);
      expect(status).to.equal(200);
      const { application: _, ...kept } = made;
      const { modified_by, modified_at, ...changed } = body;
      expect(changed).to.deep.equal({ ...kept, name: 'New', configuration });
      expect(modified_by).to.equal(server.tenant.managementApplicationId);
      expect(modified_at).to.be.a('string');
      expect(await get(made)).to.deep.equal(body);
    });

    it('keeps the code of a reactor that has its own, or takes new code', async () => {
      const made = await create({ code: CODE, configuration: { a: 'b' } });
      const version = await codeVersion(made);
      const kept = await put(made, { name: 'New', configuration: { c: 'd' } });
      expect(kept.body).to.deep.include({ name: 'New', code: CODE, configuration: { c: 'd' } });
      expect((await put(made, { name: 'New', code: CODE })).body.configuration).to.deep.equal({});
      expect(await codeVersion(made)).to.equal(version);
      expect((await put(made, { name: 'New', code: OTHER_CODE })).body.code).to.equal(OTHER_CODE);
      expect(await codeVersion(made)).not.to.equal(version);
    });

    const refused: [string, JsonObject, string][] = [
      ['without a name', { name: undefined }, 'name'],
      ['without a configuration', { configuration: undefined }, 'configuration'],
      [
        'with a configuration that does not fit',
        { configuration: { LIVE: '1' } },
        'configuration.KEY',
      ],
      ['with code for a formula', { code: CODE }, 'code'],
      ['with an unknown application', { application: { id: randomUUID() } }, 'application.id'],
      ['with an application without id', { application: {} }, 'application.id'],
    ];
    for (const [what, over, path] of refused) {
      it(`is refused ${what}`, async () => {
        const made = await ofFormula();
        const json = { name: 'New', configuration: { KEY: 'k-2', LIVE: 'true' }, ...over };
        const { status, body } = await put<JsonObject>(made, json);
        expect(status).to.equal(400);
        expect(body.errors).to.include.keys(path);
        expect(await get(made)).to.deep.equal(made);
      });
    }

    it('finds nothing of another tenant', async () => {
      const { id } = await create();
      const json = { name: 'Stolen' };
      expect((await manage(`PUT /reactors/${id}`, json, other)).status).to.equal(404);
      expect((await manage(`PATCH /reactors/${id}`, json, other)).status).to.equal(404);
      expect((await manage(`PUT /reactors/${randomUUID()}`, json)).status).to.equal(404);
    });
  });

  describe('PATCH /reactors/{id}', () => {
    it('changes what is there and keeps the rest', async () => {
      const made = await ofFormula();
      const named = await patch(made, { name: 'New' });
      expect(named.status).to.equal(204);
      expect(named.text).to.equal('');
      const { modified_by: _by, modified_at: _at, ...changed } = await get(made);
      expect(changed).to.deep.equal({ ...made, name: 'New' });
      expect((await patch(made, { configuration: { KEY: 'k-2' } })).status).to.equal(204);
      expect((await get(made)).configuration).to.deep.equal({ KEY: 'k-2', LIVE: 'true' });
      expect((await patch(made, {})).status).to.equal(204);
      expect((await get(made)).name).to.equal('New');
    });

    it('removes by null: the application, a name of the configuration, all of them', async () => {
      const made = await create({
        ...{ code: CODE, application: { id: application.id } },
        configuration: { a: '1', b: '2', c: '3' },
      });
      await patch(made, { application: null, configuration: { a: null, d: '4' } });
      const { configuration, ...rest } = await get(made);
      expect(configuration).to.deep.equal({ b: '2', c: '3', d: '4' });
      expect(rest).not.to.have.property('application');
      await patch(made, { application: { id: application.id }, configuration: null });
      expect(await get(made)).to.deep.include({ configuration: {} });
      expect((await get(made)).application?.id).to.equal(application.id);
      await patch(made, { application: {} });
      expect((await get(made)).application?.id).to.equal(application.id);
      await patch(made, { application: { id: null } });
      expect(await get(made)).not.to.have.property('application');
    });

    it('replaces code of its own and gives it a new version', async () => {
      const made = await create();
      const version = await codeVersion(made);
      await patch(made, { name: 'x' });
      expect(await codeVersion(made)).to.equal(version);
      expect((await patch(made, { code: OTHER_CODE })).status).to.equal(204);
      expect((await get(made)).code).to.equal(OTHER_CODE);
      expect(await codeVersion(made)).not.to.equal(version);
    });

    it('does not judge an application again that it does not change', async () => {
      const { body } = await manage<Application>('POST /applications', {
        ...{ name: 'Gone', type: 'private', permissions: ['token:create'] },
      });
      const made = await create({ code: CODE, application: { id: body.id } });
      await manage(`DELETE /applications/${body.id}`);
      expect((await patch(made, { name: 'x' })).status).to.equal(204);
      const again = await patch(made, { application: { id: body.id } });
      expect(again.body.errors).to.have.all.keys('application.id');
    });

    const refused: [string, unknown, string][] = [
      ['a name that is null', { name: null }, 'name'],
      ['code that is null', { code: null }, 'code'],
      ['code for a formula', { code: CODE }, 'code'],
      ['the removal of a declared name', { configuration: { KEY: null } }, 'configuration.KEY'],
      ['the removal of them all', { configuration: null }, 'configuration.KEY'],
      ['a value of the wrong type', { configuration: { LIVE: 'no' } }, 'configuration.LIVE'],
      ['an undeclared name', { configuration: { mine: 'x' } }, 'configuration'],
      [
        'the application of another tenant',
        { application: { id: randomUUID() } },
        'application.id',
      ],
      ['a list', [{ name: 'x' }], 'body'],
      ['a text', 'x', 'body'],
    ];
    for (const [what, json, path] of refused) {
      it(`refuses ${what}, and changes nothing`, async () => {
        const made = await ofFormula();
        const { status, body } = await patch(made, json);
        expect(status).to.equal(400);
        expect(body.errors).to.include.keys(path);
        expect(await get(made)).to.deep.equal(made);
      });
    }

    it('refuses a 26th name of the configuration', async () => {
      const names = Array.from({ length: 25 }, (_, n) => [`n${n}`, 'x']);
      const made = await create({ code: CODE, configuration: Object.fromEntries(names) });
      expect((await patch(made, { configuration: { more: 'x' } })).status).to.equal(400);
      const exchanged = await patch(made, { configuration: { more: 'x', n0: null } });
      expect(exchanged.status).to.equal(204);
    });

    const mediaTypes = ['application/json', 'application/json-patch+json', 'text/plain', undefined];
    for (const mediaType of mediaTypes) {
      it(`answers 415 to ${mediaType ?? 'no media type'}`, async () => {
        const made = await create();
        const { status } = await call(server.baseUrl, `PATCH /reactors/${made.id}`, {
          key: server.tenant.managementKey,
          body: new TextEncoder().encode('{"name":"x"}'),
          headers: mediaType === undefined ? {} : { 'content-type': mediaType },
        });
        expect(status).to.equal(415);
        expect(await get(made)).to.deep.equal(made);
      });
    }

    it('is no media type of any other operation', async () => {
      const { id } = await create();
      const { status } = await call(server.baseUrl, `PUT /reactors/${id}`, {
        ...{ key: server.tenant.managementKey, headers: MERGE_PATCH, json: { name: 'x' } },
      });
      expect(status).to.equal(415);
    });

    it('loses none of many at once', async () => {
      const made = await create();
      const names = Array.from({ length: 20 }, (_, n) => `name-${n}`);
      const patches = names.map((name) => patch(made, { configuration: { [name]: name } }));
      for (const { status } of await Promise.all(patches)) expect(status).to.equal(204);
      const all = Object.fromEntries(names.map((name) => [name, name]));
      expect((await get(made)).configuration).to.deep.equal(all);
    });
  });

  it('are recorded as changes of configuration, and only when something was written', async () => {
    const made = await create();
    await put(made, { name: 'x' });
    await patch(made, { name: 'y' });
    await patch(made, { application: { id: randomUUID() } });
    await manage(`DELETE /reactors/${made.id}`);
    const { rows } = await server.pool.query(
      'SELECT tenant_id FROM config_changes WHERE kind = $1 AND id = $2',
      ['reactor', made.id],
    );
    expect(rows).to.deep.equal(Array(4).fill({ tenant_id: server.tenant.id }));
  });
});
