/** What a formula may say and declare: every member of its requests, one wrong at a time. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { ReactorFormula } from '../../../shared/api/reactor-formulas.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';

const CODE = 'module.exports = async function (req) { return { raw: req.args }; };';
const PAYMENT = { name: 'Charge', type: 'private', code: CODE };

describe('the members of a reactor formula', () => {
  let server: TestControlPlane;

  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());

  function manage<T = ReactorFormula>(line: string, json: unknown): Promise<Answer<T>> {
    return call<T>(server.baseUrl, line, { key: server.tenant.managementKey, json });
  }
  async function create(over: JsonObject): Promise<ReactorFormula> {
    const made = await manage('POST /reactor-formulas', { ...PAYMENT, ...over });
    expect(made.status, made.text).to.equal(201);
    return made.body;
  }

  const configured = (...names: unknown[]) => ({
    configuration: names.map((name) => ({ name, type: 'string' })),
  });
  const asked = (...names: unknown[]) => ({
    request_parameters: names.map((name) => ({ name, type: 'string' })),
  });
  const refused: [string, JsonObject, string][] = [
    ['a missing name', { name: undefined }, 'name'],
    ['a name of 201 characters', { name: 'x'.repeat(201) }, 'name'],
    ['a name of two lines', { name: 'a\nb' }, 'name'],
    ['a missing type', { type: undefined }, 'type'],
    ['an unknown type', { type: 'public' }, 'type'],
    ['an id that is no uuid', { id: 'mine' }, 'id'],
    ['an id that Postgres would not take', { id: `urn:uuid:${randomUUID()}` }, 'id'],
    ['a description of 1,001 characters', { description: 'x'.repeat(1_001) }, 'description'],
    ['a description with NUL', { description: 'a\0b' }, 'description'],
    ['an icon elsewhere', { icon: 'https://example.com/icon.png' }, 'icon'],
    ['an icon that is a page', { icon: 'data:text/html;base64,AAAA' }, 'icon'],
    ['an icon that is too large', { icon: `data:image/png;base64,${'A'.repeat(50_000)}` }, 'icon'],
    ['missing code', { code: undefined }, 'code'],
    ['code that is null', { code: null }, 'code'],
    ['no code', { code: '' }, 'code'],
    ['code with NUL', { code: `${CODE}//\0` }, 'code'],
    ['code of 50,001 characters', { code: CODE.padEnd(50_001) }, 'code'],
    ['declarations that are no list', { configuration: {} }, 'configuration'],
    [
      '26 declarations',
      configured(...Array.from({ length: 26 }, (_, n) => `n${n}`)),
      'configuration',
    ],
    ['a name with a dot in the configuration', configured('a.b'), 'configuration.0.name'],
    ['an empty name', configured(''), 'configuration.0.name'],
    ['a name that is a number', configured(1), 'configuration.0.name'],
    ['a name twice', configured('a', 'a'), 'configuration.1.name'],
    ['__proto__ as a name', configured('__proto__'), 'configuration.0.name'],
    ['a declaration without type', { configuration: [{ name: 'a' }] }, 'configuration.0.type'],
    [
      'a type that is none',
      { configuration: [{ name: 'a', type: 'object' }] },
      'configuration.0.type',
    ],
    [
      'a long description of a name',
      { configuration: [{ name: 'a', type: 'string', description: 'x'.repeat(401) }] },
      'configuration.0.description',
    ],
    [
      'NUL in a description, which jsonb cannot hold',
      { configuration: [{ name: 'a', type: 'string', description: '\0' }] },
      'configuration.0.description',
    ],
    [
      '26 parameters',
      asked(...Array.from({ length: 26 }, (_, n) => `n${n}`)),
      'request_parameters',
    ],
    ['a parameter with a dot at its end', asked('card.'), 'request_parameters.0.name'],
    ['a parameter with two dots', asked('card..number'), 'request_parameters.0.name'],
    ['a parameter with a bracket', asked('card[0]x'), 'request_parameters.0.name'],
    ['a parameter twice', asked('ab', 'cd', 'ab'), 'request_parameters.2.name'],
    [
      'a parameter inside another',
      asked('card.number.last', 'card.number'),
      'request_parameters.0.name',
    ],
    ['a parameter around another', asked('card', 'card.number'), 'request_parameters.1.name'],
    ['a prototype as a segment', asked('card.__proto__.x'), 'request_parameters.0.name'],
    ['a constructor', asked('constructor'), 'request_parameters.0.name'],
    ['a prototype', asked('ok', 'ab.prototype'), 'request_parameters.1.name'],
    [
      'optional that is a text',
      { request_parameters: [{ name: 'ab', type: 'string', optional: 'no' }] },
      'request_parameters.0.optional',
    ],
  ];
  for (const [what, over, path] of refused) {
    it(`refuses ${what}`, async () => {
      const json = { ...PAYMENT, ...over };
      const { status, body } = await manage<JsonObject>('POST /reactor-formulas', json);
      expect(status).to.equal(400);
      expect(body.errors).to.have.all.keys(path);
    });
  }

  it('accepts names that only begin alike, and a path beside another', async () => {
    const { request_parameters } = await create(asked('card', 'cards.number', 'card_number', 'x'));
    expect(request_parameters).to.have.lengthOf(4);
  });

  it('are judged by a replacement in the same way', async () => {
    const { id } = await create({});
    const json = { ...PAYMENT, name: undefined, ...configured('a', 'a') };
    const unnamed = await manage<JsonObject>(`PUT /reactor-formulas/${id}`, json);
    expect(unnamed.body.errors).to.have.all.keys('name');
    const twice = await manage<JsonObject>(`PUT /reactor-formulas/${id}`, { ...json, name: 'x' });
    expect(twice.body.errors).to.have.all.keys('configuration.1.name');
  });

  it('are never repeated by an error', async () => {
    const json = { ...PAYMENT, type: 'secret-1', ...configured('secret-2', 'secret-2') };
    const { status, text } = await manage('POST /reactor-formulas', json);
    expect(status).to.equal(400);
    expect(text).not.to.contain('secret');
  });
});
