/** PUT and PATCH of proxies: what they replace, merge, keep, refuse, and that none is lost. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Application } from '../../../shared/api/applications.ts';
import type { ProxyAnswer } from '../../../shared/api/proxies.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

const CODE = 'module.exports = async (req) => ({ body: req.args.body });';
const OTHER_CODE = 'module.exports = async () => ({});';
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
const BARE = { name: 'P', destination_url: 'https://destination.example/api' };
const NEW = { name: 'New', destination_url: 'https://other.example' };

describe('changes of proxies', () => {
  let server: TestControlPlane;
  let other: TestTenant;
  let applicationId: string;

  before(async () => {
    server = await startTestControlPlane();
    other = await server.addTenant('Other');
    applicationId = (await createApplication()).id;
  });
  after(() => server.stop());

  function manage<T = ProxyAnswer>(
    line: string,
    json?: unknown,
    { managementKey: key } = server.tenant,
  ): Promise<Answer<T>> {
    const headers: Record<string, string> = line.startsWith('PATCH') ? MERGE_PATCH : {};
    return call<T>(server.baseUrl, line, { key, headers, ...(json === undefined ? {} : { json }) });
  }
  async function createApplication(): Promise<Application> {
    const json = { name: 'A', type: 'private', permissions: ['token:create'] };
    return (await manage<Application>('POST /applications', json)).body;
  }
  async function create(over: JsonObject = {}): Promise<ProxyAnswer> {
    const made = await manage('POST /proxies', { ...BARE, ...over });
    expect(made.status, made.text).to.equal(201);
    return made.body;
  }
  const createFull = () =>
    create({
      ...{ request_transform: { code: CODE }, response_transform: { code: OTHER_CODE } },
      ...{ application: { id: applicationId }, configuration: { a: '1', b: '2', c: '3' } },
      ...{ require_auth: false, leak_tripwire: 'redact' },
    });
  const put = <T = ProxyAnswer>({ id }: ProxyAnswer, json: unknown) =>
    manage<T>(`PUT /proxies/${id}`, json);
  const patch = ({ id }: ProxyAnswer, json: unknown) =>
    manage<JsonObject>(`PATCH /proxies/${id}`, json);
  const get = async ({ id }: ProxyAnswer) => (await manage(`GET /proxies/${id}`)).body;
  /** Without what every change leaves behind. */
  const unmarked = ({ modified_by: _by, modified_at: _at, ...rest }: ProxyAnswer) => rest;
  async function versions({ id }: ProxyAnswer): Promise<[string | null, string | null]> {
    const { rows } = await server.pool.query<{ request: string; response: string }>(
      `SELECT request_transform->>'code_version' AS request,
         response_transform->>'code_version' AS response FROM proxies WHERE id = $1`,
      [id],
    );
    return [rows[0]?.request ?? null, rows[0]?.response ?? null];
  }

  describe('PUT /proxies/{id}', () => {
    it('replaces everything but the key: what is absent is gone, or has its default', async () => {
      const made = await createFull();
      const { status, body } = await put(made, NEW);
      expect(status).to.equal(200);
      expect(unmarked(body)).to.deep.equal({
        ...{ ...NEW, id: made.id, key: made.key, tenant_id: made.tenant_id },
        ...{ require_auth: true, leak_tripwire: 'report', configuration: {} },
        ...{ created_by: made.created_by, created_at: made.created_at },
      });
      expect(body.modified_by).to.equal(server.tenant.managementApplicationId);
      expect(body.modified_at).to.be.a('string');
      expect(await get(made)).to.deep.equal(body);
    });

    it('sets what it is given', async () => {
      const made = await create();
      const given = {
        ...{ request_transform: { code: CODE }, response_transform: { code: OTHER_CODE } },
        ...{ configuration: { KEY: 'x' }, require_auth: false, leak_tripwire: 'off' },
      };
      const { body } = await put(made, { ...NEW, ...given, application: { id: applicationId } });
      expect(body).to.deep.include({ ...NEW, ...given, application_id: applicationId });
    });

    it('gives code a new version when it changes, and only then', async () => {
      const made = await createFull();
      const before = await versions(made);
      expect(new Set(before).size).to.equal(2);
      const transforms = { request_transform: { code: CODE } };
      await put(made, { ...NEW, ...transforms, response_transform: { code: CODE } });
      const after = await versions(made);
      expect(after[0]).to.equal(before[0]);
      expect(after[1]).not.to.be.oneOf([...before, null]);
      await put(made, NEW);
      expect(await versions(made)).to.deep.equal([null, null]);
    });

    const refused: [string, JsonObject, string][] = [
      ['without a name', { name: undefined }, 'name'],
      ['without a destination', { destination_url: undefined }, 'destination_url'],
      ['with a private destination', { destination_url: 'https://10.0.0.1/' }, 'destination_url'],
      ['with an unknown application', { application: { id: randomUUID() } }, 'application.id'],
      ['with an application without id', { application: {} }, 'application.id'],
      ['with a transform without code', { request_transform: {} }, 'request_transform.code'],
      [
        'with code that does not compile',
        { response_transform: { code: '(' } },
        'response_transform.code',
      ],
    ];
    for (const [what, over, path] of refused) {
      it(`is refused ${what}`, async () => {
        const made = await createFull();
        const { status, body } = await put<JsonObject>(made, { ...NEW, ...over });
        expect(status).to.equal(400);
        expect(body.errors).to.have.all.keys(path);
        expect(await get(made)).to.deep.equal(made);
      });
    }

    it('finds nothing of another tenant', async () => {
      const made = await create();
      expect((await manage(`PUT /proxies/${made.id}`, NEW, other)).status).to.equal(404);
      expect((await manage(`PATCH /proxies/${made.id}`, NEW, other)).status).to.equal(404);
      expect((await manage(`PUT /proxies/${randomUUID()}`, NEW)).status).to.equal(404);
      expect(await get(made)).to.deep.equal(made);
    });
  });

  describe('PATCH /proxies/{id}', () => {
    const changes: [string, JsonObject, JsonObject][] = [
      ['nothing', {}, {}],
      ['a name', { name: 'New' }, { name: 'New' }],
      [
        'a destination',
        { destination_url: NEW.destination_url },
        { destination_url: NEW.destination_url },
      ],
      ['require_auth', { require_auth: true }, { require_auth: true }],
      ['the tripwire', { leak_tripwire: 'off' }, { leak_tripwire: 'off' }],
      [
        'a part of the configuration',
        { configuration: { a: null, b: 'x', d: '4' } },
        { configuration: { b: 'x', c: '3', d: '4' } },
      ],
      [
        'the code of a transform',
        { request_transform: { code: OTHER_CODE } },
        {
          request_transform: { code: OTHER_CODE },
        },
      ],
      ['nothing of a transform', { request_transform: {}, response_transform: {} }, {}],
      ['nothing of the application', { application: {} }, {}],
    ];
    for (const [what, change, expected] of changes) {
      it(`changes ${what} and keeps the rest`, async () => {
        const made = await createFull();
        const { status, text } = await patch(made, change);
        expect(status).to.equal(204);
        expect(text).to.equal('');
        const changed = await get(made);
        expect(unmarked(changed)).to.deep.equal({ ...made, ...expected });
        expect(changed.modified_by).to.equal(server.tenant.managementApplicationId);
      });
    }

    it('removes by null, or brings the default back', async () => {
      const made = await createFull();
      await patch(made, { request_transform: null, application: null, require_auth: null });
      const { request_transform: _, application_id: _id, ...left } = made;
      expect(unmarked(await get(made))).to.deep.equal({ ...left, require_auth: true });
      await patch(made, { response_transform: { code: null }, leak_tripwire: null });
      await patch(made, { configuration: null });
      const { response_transform: _response, ...rest } = left;
      const defaults = { require_auth: true, leak_tripwire: 'report', configuration: {} };
      expect(unmarked(await get(made))).to.deep.equal({ ...rest, ...defaults });
    });

    it('gives an application, and takes it by the null of its id', async () => {
      const made = await create();
      await patch(made, { application: { id: applicationId } });
      expect((await get(made)).application_id).to.equal(applicationId);
      await patch(made, { application: { id: null } });
      expect(await get(made)).not.to.have.property('application_id');
    });

    it('keeps the version of code that it does not change', async () => {
      const made = await createFull();
      const [request, response] = await versions(made);
      await patch(made, { name: 'x', request_transform: { code: CODE } });
      expect(await versions(made)).to.deep.equal([request, response]);
      await patch(made, { request_transform: { code: OTHER_CODE } });
      const [changed, kept] = await versions(made);
      expect(changed).not.to.be.oneOf([request, response, null]);
      expect(kept).to.equal(response);
    });

    it('does not judge again what it does not change', async () => {
      const { id } = await createApplication();
      const made = await create({ application: { id } });
      await manage(`DELETE /applications/${id}`);
      await server.pool.query(
        `UPDATE proxies SET destination_url = 'http://10.0.0.1/' WHERE id = $1`,
        [made.id],
      );
      expect((await patch(made, { name: 'x' })).status).to.equal(204);
      const again = await patch(made, { application: { id } });
      expect(again.body.errors).to.have.all.keys('application.id');
    });

    const refused: [string, unknown, string][] = [
      ['a name that is null', { name: null }, 'name'],
      ['a destination that is null', { destination_url: null }, 'destination_url'],
      ['a destination by http', { destination_url: 'http://e.example/' }, 'destination_url'],
      [
        'code that does not compile',
        { request_transform: { code: '\n\n(' } },
        'request_transform.code',
      ],
      ['an empty code', { response_transform: { code: '' } }, 'response_transform.code'],
      ['a transform that is a text', { response_transform: CODE }, 'response_transform'],
      ['a configuration that is a list', { configuration: [] }, 'configuration'],
      ['an unknown application', { application: { id: randomUUID() } }, 'application.id'],
      ['another tripwire', { leak_tripwire: 'shout' }, 'leak_tripwire'],
      ['a list', [{ name: 'x' }], 'body'],
      ['a text', 'x', 'body'],
    ];
    for (const [what, json, path] of refused) {
      it(`refuses ${what}, and changes nothing`, async () => {
        const made = await createFull();
        const { status, body } = await patch(made, json);
        expect(status).to.equal(400);
        expect(body.errors).to.have.all.keys(path);
        expect(await get(made)).to.deep.equal(made);
      });
    }

    it('refuses a 26th name of the configuration', async () => {
      const names = Array.from({ length: 25 }, (_, n) => [`n${n}`, 'x']);
      const made = await create({ configuration: Object.fromEntries(names) });
      expect((await patch(made, { configuration: { more: 'x' } })).status).to.equal(400);
      const exchanged = await patch(made, { configuration: { more: 'x', n0: null } });
      expect(exchanged.status).to.equal(204);
    });

    const mediaTypes = ['application/json', 'application/json-patch+json', 'text/plain', undefined];
    for (const mediaType of mediaTypes) {
      it(`answers 415 to ${mediaType ?? 'no media type'}`, async () => {
        const made = await create();
        const { status } = await call(server.baseUrl, `PATCH /proxies/${made.id}`, {
          key: server.tenant.managementKey,
          body: new TextEncoder().encode('{"name":"x"}'),
          headers: mediaType === undefined ? {} : { 'content-type': mediaType },
        });
        expect(status).to.equal(415);
        expect(await get(made)).to.deep.equal(made);
      });
    }

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
    await put(made, NEW);
    await patch(made, { name: 'y' });
    await patch(made, { application: { id: randomUUID() } });
    await put(made, { ...NEW, destination_url: 'https://localhost/' });
    await manage(`DELETE /proxies/${made.id}`);
    const { rows } = await server.pool.query(
      'SELECT tenant_id FROM config_changes WHERE kind = $1 AND id = $2',
      ['proxy', made.id],
    );
    expect(rows).to.deep.equal(Array(4).fill({ tenant_id: server.tenant.id }));
  });
});
