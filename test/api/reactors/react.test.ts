/** `POST /reactors/{id}/react`: what the code gets and what the caller gets (spec: Reactors; facts 9.3). */
import { expect } from 'chai';
import { randomCardNumber } from '../../support/card-numbers.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { expectProblem } from '../tokens/token-client.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ECHO = 'return { raw: req.args }';

describe('a reaction', () => {
  let reactors: Reactors;
  let echo: Reactor;
  before(async () => {
    reactors = await startReactors();
    echo = await reactors.script(ECHO);
  });
  after(() => reactors?.stop());

  /** The `raw` of a reaction that must succeed. */
  async function raw(reactor: Reactor, args?: unknown): Promise<unknown> {
    const { status, text, body } = await reactors.react(reactor, { args });
    expect(status, text).to.equal(200);
    return body.raw;
  }

  it('runs the worked exchange of the API word for word', async () => {
    const number = randomCardNumber();
    const card = await reactors.token({
      type: 'card',
      data: { number, expiration_month: 1, expiration_year: 2030, cvc: '123' },
    });
    const { id: application_id } = await reactors.application({ permissions: ['token:create'] });
    const reactor = await reactors.reactor({
      formula: {
        code: "module.exports = async (req) => ({ raw: { n: req.args.card.number.length, k: req.configuration.PSP_KEY }, tokenize: { ref: 'secret-1' } })",
        configuration: [{ name: 'PSP_KEY', type: 'string' }],
        request_parameters: [
          { name: 'card.number', type: 'string' },
          { name: 'amount', type: 'number', optional: true },
        ],
      },
      configuration: { PSP_KEY: 'k1' },
      application: { id: application_id },
    });
    const args = { card: `{{ ${card} }}`, amount: '12.5', note: 'dropped, undeclared' };
    const { status, body, text } = await reactors.react(reactor, { args });
    expect(status, text).to.equal(200);
    expect(Object.keys(body)).to.deep.equal(['tokens', 'raw']);
    expect(body.raw).to.deep.equal({ n: 16, k: 'k1' });
    const { ref } = body.tokens as { ref: string };
    expect(ref).to.match(UUID);
    const made = await call(reactors.url, `GET /tokens/${ref}`, { key: reactors.key });
    expect(made.body).to.deep.include({ data: 'secret-1', created_by: application_id });
  });

  it('gets exactly the declared arguments, cast after detokenization', async () => {
    const number = randomCardNumber();
    const card = await reactors.token({
      type: 'card',
      data: { number, expiration_month: 7, expiration_year: 2031 },
    });
    const year = await reactors.token({ type: 'token', data: '2031' });
    const reactor = await reactors.reactor({
      formula: {
        code: `module.exports = (req) => { ${ECHO} }`,
        request_parameters: [
          { name: 'card.number', type: 'string' },
          { name: 'card.expiration_month', type: 'string' },
          { name: 'year', type: 'number' },
          { name: 'text', type: 'string', optional: true },
        ],
      },
    });
    const args = {
      card: `{{${card}}}`,
      year: `{{ ${year} }}`,
      text: `no ${number.slice(-4)}: {{ ${year} }}!`,
    };
    expect(await raw(reactor, args)).to.deep.equal({
      card: { number, expiration_month: '7' },
      year: 2031,
      text: `no ${number.slice(-4)}: 2031!`,
    });
    const object = await reactors.react(reactor, { args: { ...args, year: args.card } });
    expectProblem(object, 400, 'args.year');
    expect(object.text).not.to.contain(number);
    expectProblem(await reactors.react(reactor, {}), 400, 'args');
  });

  it('gets any arguments when nothing is declared, and null without any', async () => {
    const id = await reactors.token({ type: 'token', data: { a: [1, { b: null }] } });
    expect(await raw(echo, [`{{ ${id} }}`, 1])).to.deep.equal([{ a: [1, { b: null }] }, 1]);
    expect(await raw(echo, `{{ ${id} }}`)).to.deep.equal({ a: [1, { b: null }] });
    expect(await raw(echo)).to.equal(null);
    const text = '{"args":{"__proto__":{"x":1},"-0":-0,"exact":12345678.9012345}}';
    const headers = { 'content-type': 'application/json', 'bt-api-key': reactors.key };
    const line = `POST /reactors/${echo.id}/react`;
    const answer = await call(reactors.url, line, { body: text, headers });
    expect(answer.text).to.equal('{"raw":{"__proto__":{"x":1},"-0":0,"exact":12345678.9012345}}');
  });

  it('never evaluates what a token holds', async () => {
    const secret = await reactors.token({ type: 'token', data: 'the secret' });
    const bait = await reactors.token({ type: 'token', data: `{{ ${secret} }}` });
    expect(await raw(echo, `{{ ${bait} }}`)).to.equal(`{{ ${secret} }}`);
    const made = await reactors.script('return { raw: "{{ " + req.args + " }}" }');
    expect(await raw(made, secret)).to.equal(`{{ ${secret} }}`);
  });

  it('gets its configuration with the declared types, texts without', async () => {
    const code = 'module.exports = (req) => ({ raw: req.configuration })';
    const configuration = { A: '1.5', B: 'TRUE', C: 'x' };
    const types = [
      ['A', 'number'],
      ['B', 'boolean'],
      ['C', 'string'],
    ];
    const declared = types.map(([name, type]) => ({ name, type }));
    const typed = await reactors.reactor({
      formula: { code, configuration: declared },
      configuration,
    });
    expect(await raw(typed)).to.deep.equal({ A: 1.5, B: true, C: 'x' });
    expect(await raw(await reactors.reactor({ code, configuration }))).to.deep.equal(configuration);
    expect(await raw(await reactors.reactor({ code }))).to.deep.equal({});
  });

  it('answers what was returned, and leaves out what was not', async () => {
    const answers: [string, string][] = [
      ['', '{}'],
      ['return null', '{}'],
      ['return {}', '{}'],
      ['return { raw: null }', '{"raw":null}'],
      ['return { raw: 0, other: 1, body: {}, headers: {} }', '{"raw":0}'],
      ['return { tokenize: null }', '{}'],
      ['return { tokenize: {} }', '{"tokens":{}}'],
      ['return { raw: "}" + String.fromCharCode(34) }', '{"raw":"}\\""}'],
    ];
    for (const [body, expected] of answers) {
      const { status, text } = await reactors.react(await reactors.script(body));
      expect([status, text], body).to.deep.equal([200, expected]);
    }
  });

  it('makes all tokens it asks for, or none', async () => {
    const { id: mayNot } = await reactors.application({ permissions: ['token:read'] });
    const good = await reactors.script('return { tokenize: req.args }', {
      application: { id: mayNot },
    });
    const card = { type: 'card', data: { number: randomCardNumber() } };
    const { body } = await reactors.react(good, { args: { card, list: ['a', 1, true] } });
    const { card: made, list } = body.tokens as { card: JsonObject; list: string[] };
    expect(made).to.deep.include({ type: 'card' });
    expect(JSON.stringify(made)).not.to.contain(card.data.number);
    expect(list).to.have.length(3);
    const bad = {
      ok: { id: 'never-made', type: 'token', data: 1 },
      card: { type: 'card', data: { number: '1' } },
    };
    expectProblem(await reactors.react(good, { args: bad }), 400, 'tokenize.card.data.number');
    const read = await call(reactors.url, 'GET /tokens/never-made', { key: reactors.key });
    expect(read.status).to.equal(404);
    const many = Array.from({ length: 101 }, (_, index) => index);
    expectProblem(await reactors.react(good, { args: many }), 400, 'tokenize');
    const { key: user } = await reactors.application({ permissions: ['token:use'] });
    expectProblem(await reactors.react(good, { args: 'x' }, user), 403);
  });

  it('uses at most 100 distinct tokens, and names unknown ones', async () => {
    const ids = await Promise.all(
      Array.from({ length: 101 }, (_, index) => reactors.token({ type: 'token', data: index })),
    );
    const args = ids.map((id) => `{{ ${id} }}`);
    const hundred = args.slice(0, 100);
    expect(await raw(echo, [...hundred, ...hundred])).to.have.length(200);
    expectProblem(await reactors.react(echo, { args }), 400, 'args');
    const unknown = await reactors.react(echo, { args: { a: '{{ not-there }}', b: args[0] } });
    expectProblem(unknown, 400);
    expect(unknown.body.detail).to.equal('Failed to detokenize some tokens: not-there');
    expectProblem(await reactors.react(echo, { args: { a: '{{ broken' } }), 400, 'args.a');
  });

  // What client libraries send that are given no arguments.
  it('runs without arguments for a request without a body, whatever its type', async () => {
    const { key } = reactors;
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    for (const bodyless of [{ key }, { key, headers: form }]) {
      const line = `POST /reactors/${echo.id}/react`;
      const { status, text } = await call(reactors.url, line, bodyless);
      expect(status, text).to.equal(200);
      expect(text).to.equal('{"raw":null}');
      const later = await call(reactors.url, `${line}-async`, bodyless);
      expect(later.status, later.text).to.equal(202);
    }
  });

  it('refuses what it could not serve: other media types, large bodies', async () => {
    for (const timeout_ms of [1, '10000', -1, null, 1e9]) {
      expect((await reactors.react(echo, { timeout_ms, callback_url: null })).status).to.equal(200);
    }
    const line = `POST /reactors/${echo.id}/react`;
    const { key } = reactors;
    const plain = { key, body: '{}', headers: { 'content-type': 'text/plain' } };
    expectProblem(await call(reactors.url, line, plain), 415);
    expectProblem(await call(reactors.url, line, { key, json: [] }), 400, 'body');
    const five = 'x'.repeat(5 * 1024 * 1024 - 100);
    expect((await reactors.react(await reactors.script(''), { args: five })).text).to.equal('{}');
    expectProblem(await reactors.react(echo, { args: `${five}${'x'.repeat(200)}` }), 413);
    expectProblem(await call(reactors.url, `GET /reactors/${echo.id}/react`, { key }), 405);
  });
});
