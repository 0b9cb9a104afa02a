/** The application of a proxy: named by reference, or in the way that answers have it. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

const BARE = { name: 'P', destination_url: 'https://destination.example/api' };

describe('the application of a proxy', () => {
  let server: TestControlPlane;
  let one: string;
  let other: string;

  before(async () => {
    server = await startTestControlPlane();
    [one, other] = [await createApplication(), await createApplication()];
  });
  after(() => server.stop());

  const manage = (request: string, json?: JsonObject, more = {}): Promise<Answer<JsonObject>> =>
    call(server.baseUrl, request, { key: server.tenant.managementKey, json, ...more });

  async function createApplication(): Promise<string> {
    const json = { name: 'A', type: 'private', permissions: ['token:create'] };
    const { body } = await manage('POST /applications', json);
    return body.id as string;
  }

  async function create(over: JsonObject): Promise<JsonObject> {
    const { status, body } = await manage('POST /proxies', { ...BARE, ...over });
    expect(status).to.equal(201);
    return body;
  }

  it('stays when what was read is written back', async () => {
    const made = await create({ application: { id: one } });
    const read = (await manage(`GET /proxies/${made.id}`)).body;
    const { status, body } = await manage(`PUT /proxies/${made.id}`, read);
    expect([status, body.application_id]).to.deep.equal([200, one]);
  });

  it('is taken in both ways, also when they say the same', async () => {
    for (const named of [
      { application_id: one.toUpperCase() },
      { application_id: one, application: { id: one.toUpperCase() } },
    ]) {
      expect((await create(named)).application_id).to.equal(one);
    }
    for (const unnamed of [{ application_id: null }, { application_id: null, application: null }]) {
      expect(await create(unnamed)).not.to.have.property('application_id');
    }
  });

  it('is changed and removed by PATCH in both ways', async () => {
    const { id } = await create({ application: { id: one } });
    const patch = async (json: JsonObject): Promise<unknown> => {
      const headers = { 'content-type': 'application/merge-patch+json' };
      expect((await manage(`PATCH /proxies/${id}`, json, { headers })).status).to.equal(204);
      return (await manage(`GET /proxies/${id}`)).body.application_id;
    };
    expect(await patch({ application_id: other })).to.equal(other);
    expect(await patch({ name: 'Q' })).to.equal(other);
    expect(await patch({ application_id: null })).to.equal(undefined);
  });

  const refused: [string, () => JsonObject, string][] = [
    ['unknown', () => ({ application_id: randomUUID() }), 'application.id'],
    ['no id', () => ({ application_id: 'secret-text' }), 'application_id'],
    [
      'another one by its reference',
      () => ({ application_id: one, application: { id: other } }),
      'application_id',
    ],
    ['none by its reference', () => ({ application_id: one, application: null }), 'application_id'],
    [
      'that of a management key',
      () => ({ application_id: server.tenant.managementApplicationId }),
      'application.id',
    ],
  ];
  for (const [what, over, path] of refused) {
    it(`is refused when it is ${what}`, async () => {
      const { status, body, text } = await manage('POST /proxies', { ...BARE, ...over() });
      expect(status).to.equal(400);
      expect(body.errors).to.have.all.keys(path);
      expect(text).not.to.contain('secret-text');
    });
  }
});
