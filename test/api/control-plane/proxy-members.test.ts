/** What a proxy may say: every member of its requests, one wrong at a time, and the code of transforms. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

const CODE = 'module.exports = async (req) => ({ body: req.args.body });';
const BARE = { name: 'P', destination_url: 'https://destination.example/api' };

describe('the members of a proxy', () => {
  let server: TestControlPlane;

  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());

  function post(over: JsonObject): Promise<Answer<JsonObject>> {
    const key = server.tenant.managementKey;
    return call(server.baseUrl, 'POST /proxies', { key, json: { ...BARE, ...over } });
  }
  const errorsOf = ({ body }: Answer<JsonObject>) => body.errors as Record<string, string[]>;

  const configuration = (values: JsonObject): JsonObject => ({ configuration: values });
  const refused: [string, JsonObject, string][] = [
    ['a missing name', { name: undefined }, 'name'],
    ['a name that is null', { name: null }, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['a name of 201 characters', { name: 'x'.repeat(201) }, 'name'],
    ['a name of two lines', { name: 'a\nb' }, 'name'],
    ['a missing destination', { destination_url: undefined }, 'destination_url'],
    ['require_auth as a text', { require_auth: 'secret-text' }, 'require_auth'],
    ['require_auth as a number', { require_auth: 0 }, 'require_auth'],
    ['another tripwire', { leak_tripwire: 'secret-text' }, 'leak_tripwire'],
    ['a transform that is code', { request_transform: CODE }, 'request_transform'],
    ['a transform without code', { request_transform: {} }, 'request_transform.code'],
    ['code that is null', { response_transform: { code: null } }, 'response_transform.code'],
    ['empty code', { response_transform: { code: '' } }, 'response_transform.code'],
    ['code with NUL', { response_transform: { code: `${CODE}\0` } }, 'response_transform.code'],
    [
      'code of 50,001 characters',
      { request_transform: { code: CODE.padEnd(50_001) } },
      'request_transform.code',
    ],
    ['an application by name', { application: 'A' }, 'application'],
    ['an application without id', { application: {} }, 'application.id'],
    ['an application whose id is no uuid', { application: { id: '7' } }, 'application.id'],
    ['a configuration that is a list', { configuration: [] }, 'configuration'],
    ['a value that is a number', configuration({ KEY: 1 }), 'configuration'],
    ['a value that is an object', configuration({ KEY: {} }), 'configuration'],
    ['a name with a dot', configuration({ 'secret.text': 'k' }), 'configuration'],
    ['a name of 201 characters in it', configuration({ ['x'.repeat(201)]: 'k' }), 'configuration'],
    ['a value of 50,001 characters', configuration({ KEY: 'x'.repeat(50_001) }), 'configuration'],
    ['a value with NUL', configuration({ KEY: '\0' }), 'configuration'],
    // Ignored, they would let through what they are there to keep back.
    ['a list of transforms', { request_transforms: [{ code: CODE }] }, 'request_transforms'],
    ['a list of masks', { response_transforms: [{ type: 'mask' }] }, 'response_transforms'],
    ['a reactor before it', { request_reactor_id: randomUUID() }, 'request_reactor_id'],
    ['a reactor behind it', { response_reactor_id: randomUUID() }, 'response_reactor_id'],
    ['expressions left alone', { disable_detokenization: true }, 'disable_detokenization'],
  ];
  for (const [what, over, path] of refused) {
    it(`refuses ${what}`, async () => {
      const answer = await post(over);
      expect(answer.status).to.equal(400);
      expect(errorsOf(answer)).to.have.all.keys(path);
      expect(answer.text).not.to.match(/secret/);
    });
  }

  it('takes members that are not served when they ask for nothing', async () => {
    const none = { request_transforms: [], response_transforms: null, request_reactor_id: null };
    const answer = await post({ ...none, disable_detokenization: false });
    expect(answer.status, answer.text).to.equal(201);
  });

  it('refuses those that are not served in a patch, too', async () => {
    const { body } = await post({});
    const { status, text } = await call(server.baseUrl, `PATCH /proxies/${body.id}`, {
      key: server.tenant.managementKey,
      json: { request_transforms: [{ code: CODE }] },
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    expect(status, text).to.equal(400);
  });

  for (const name of ['__proto__', 'constructor', 'prototype']) {
    it(`refuses ${name} as a name of the configuration`, async () => {
      const { status, body } = await call(server.baseUrl, 'POST /proxies', {
        key: server.tenant.managementKey,
        headers: { 'content-type': 'application/json' },
        body: `${JSON.stringify(BARE).slice(0, -1)},"configuration":{"${name}":"x"}}`,
      });
      expect(status).to.equal(400);
      expect(body.errors).to.have.all.keys('configuration');
    });
  }

  it('takes 25 names, and refuses 26', async () => {
    const names = Array.from({ length: 26 }, (_, n) => [`n${n}`, 'x']);
    expect((await post(configuration(Object.fromEntries(names)))).status).to.equal(400);
    expect((await post(configuration(Object.fromEntries(names.slice(1))))).status).to.equal(201);
  });

  it('keeps code of 50,000 characters as it is, whatever they are', async () => {
    const code = `/*\r\n\t\\u0000 "'😀\u2028\u0001*/${CODE}`.padEnd(50_000);
    const { status, body } = await post({ request_transform: { code } });
    expect(status).to.equal(201);
    expect(body.request_transform).to.deep.equal({ code });
  });

  const uncompiled: [string, string, RegExp][] = [
    ['does not compile', 'const a = 1;\n\nmodule.exports = 1 +* a;', /\(line 3\)$/],
    ['exports no function', 'module.exports = { run() {} };', /function/],
    ['requires a module that is not there', "require('no-such-module');", /"no-such-module"/],
    ['throws while it loads', "throw new Error('not today');", /./],
  ];
  for (const name of ['request_transform', 'response_transform']) {
    for (const [what, code, message] of uncompiled) {
      it(`refuses a ${name} whose code ${what}`, async () => {
        const answer = await post({ [name]: { code } });
        expect(answer.status).to.equal(400);
        const path = `${name}.code`;
        expect(errorsOf(answer)).to.have.all.keys(path);
        expect(errorsOf(answer)[path]?.[0]).to.match(message);
      });
    }
  }

  it('does not load code for those who may not store it, nor for a destination that is none', async () => {
    const endless = { request_transform: { code: 'for (;;);' } };
    const application = { name: 'A', type: 'management', permissions: ['proxy:read'] };
    const { body } = await call<{ key: string }>(server.baseUrl, 'POST /applications', {
      ...{ key: server.tenant.managementKey, json: application },
    });
    const { status } = await call(server.baseUrl, 'POST /proxies', {
      ...{ key: body.key, json: { ...BARE, ...endless } },
    });
    expect(status).to.equal(403);
    const refusedFirst = await post({ ...endless, destination_url: 'https://10.0.0.1/' });
    expect(errorsOf(refusedFirst)).to.have.all.keys('destination_url');
  });
});
