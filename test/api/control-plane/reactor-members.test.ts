/** What a reactor may say: every member of its requests, one wrong at a time. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

const CODE = 'module.exports = function (req) { return { raw: req.args }; };';
const OWN_CODE = { name: 'Own', code: CODE };

describe('the members of a reactor', () => {
  let server: TestControlPlane;
  let formulaId: unknown;

  before(async () => {
    server = await startTestControlPlane();
    const { body } = await manage('POST /reactor-formulas', {
      ...{ name: 'Formula', type: 'private', code: CODE },
      configuration: [
        { name: 'KEY', type: 'string' },
        { name: 'RETRIES', type: 'number' },
        { name: 'LIVE', type: 'boolean' },
      ],
    });
    formulaId = body.id;
  });
  after(() => server.stop());

  function manage(line: string, json: unknown): Promise<Answer<JsonObject>> {
    return call(server.baseUrl, line, { key: server.tenant.managementKey, json });
  }
  const fitting = (over: JsonObject): JsonObject => ({
    ...{ name: 'Charge', formula: { id: formulaId } },
    configuration: { KEY: 'sk-canary-1', RETRIES: '3', LIVE: 'false' },
    ...over,
  });

  const configuration = (over: JsonObject): JsonObject => ({
    configuration: { KEY: 'k', RETRIES: '1', LIVE: 'true', ...over },
  });
  const refused: [string, JsonObject, string[]][] = [
    ['a missing name', { name: undefined }, ['name']],
    ['a name of two lines', { name: 'a\nb' }, ['name']],
    ['neither formula nor code', { formula: undefined }, ['formula.id', 'code']],
    ['both formula and code', { code: CODE }, ['formula.id', 'code']],
    ['a formula without id', { formula: {} }, ['formula.id']],
    ['a formula that is an id', { formula: randomUUID() }, ['formula']],
    ['an id that is no uuid', { formula: { id: '7' } }, ['formula.id']],
    ['a formula that is not there', { formula: { id: randomUUID() } }, ['formula.id']],
    [
      'a formula that is not there, without a configuration',
      { formula: { id: randomUUID() }, configuration: undefined },
      ['formula.id'],
    ],
    ['no configuration', { configuration: undefined }, ['configuration']],
    ['a configuration that is null', { configuration: null }, ['configuration']],
    ['a configuration that is a list', { configuration: [] }, ['configuration']],
    ['a value that is a number', configuration({ RETRIES: 1 }), ['configuration']],
    ['a value that is an object', configuration({ KEY: {} }), ['configuration']],
    ['a missing name of the formula', configuration({ KEY: undefined }), ['configuration.KEY']],
    ['a number that is none', configuration({ RETRIES: 'many' }), ['configuration.RETRIES']],
    ['a boolean that is none', configuration({ LIVE: 'yes' }), ['configuration.LIVE']],
    ['a name in another case', configuration({ key: 'k' }), ['configuration']],
    ['a name that is not declared', configuration({ secret_name: 'k' }), ['configuration']],
    ['a name with a dot', configuration({ 'a.b': 'k' }), ['configuration']],
    ['a value of 50,001 characters', configuration({ KEY: 'x'.repeat(50_001) }), ['configuration']],
    ['a value with NUL', configuration({ KEY: '\0' }), ['configuration']],
    ['an application that is not there', { application: { id: randomUUID() } }, ['application.id']],
    ['an application without id', { application: {} }, ['application.id']],
    ['an application by name', { application: 'A' }, ['application']],
  ];
  for (const [what, over, paths] of refused) {
    it(`refuses ${what}`, async () => {
      const { status, body, text } = await manage('POST /reactors', fitting(over));
      expect(status).to.equal(400);
      expect(body.errors).to.have.all.keys(...paths);
      expect(text).not.to.match(/secret_name|sk-canary|many|yes/);
    });
  }

  it('says that the configuration of a formula without declarations is {}', async () => {
    const bare = { name: 'Bare', type: 'private', code: CODE };
    const { body: formula } = await manage('POST /reactor-formulas', bare);
    const over = { formula: { id: formula.id }, configuration: undefined };
    const { status, body } = await manage('POST /reactors', fitting(over));
    expect([status, body.errors]).to.deep.equal([
      400,
      { configuration: ['This member is required: {}, as this formula declares none'] },
    ]);
    const made = await manage('POST /reactors', fitting({ ...over, configuration: {} }));
    expect(made.status).to.equal(201);
  });

  for (const name of ['__proto__', 'constructor', 'prototype']) {
    it(`refuses ${name} as a name of the configuration`, async () => {
      const { status, body } = await call(server.baseUrl, 'POST /reactors', {
        key: server.tenant.managementKey,
        headers: { 'content-type': 'application/json' },
        body: `{"name":"Own","code":${JSON.stringify(CODE)},"configuration":{"${name}":"x"}}`,
      });
      expect(status).to.equal(400);
      expect(body.errors).to.have.all.keys('configuration');
    });
  }

  it('refuses 26 names', async () => {
    const names = Array.from({ length: 26 }, (_, n) => [`n${n}`, 'x']);
    const json = { ...OWN_CODE, configuration: Object.fromEntries(names) };
    expect((await manage('POST /reactors', json)).status).to.equal(400);
    const fewer = { ...OWN_CODE, configuration: Object.fromEntries(names.slice(1)) };
    expect((await manage('POST /reactors', fewer)).status).to.equal(201);
  });
});
