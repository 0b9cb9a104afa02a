/**
 * Contexts that are kept for later runs of a reactor: never one in which a cvc was, for what those runs
 * come to is kept as if there had been none.
 */
import { expect } from 'chai';
import { randomCardNumber } from '../../support/card-numbers.ts';
import { call } from '../../support/http-call.ts';
import { type JobRunner, startJobRunner } from './job-runner.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

const CVC = '7391';
const KEEPING = { SALLYPORT_SANDBOX_REUSE: 'reactor' };

describe('a context that is kept for later runs', () => {
  let reactors: Reactors;
  let jobs: JobRunner;
  let card: string;
  before(async () => {
    reactors = await startReactors(KEEPING);
    jobs = await startJobRunner(reactors, { settings: KEEPING });
    card = await reactors.token({ type: 'card', data: { number: randomCardNumber(), cvc: CVC } });
  });
  after(async () => {
    await jobs?.stop();
    await reactors?.stop();
  });

  /** Code that answers what its context remembers, and then remembers `remembered`. */
  const remembering = (remembered: string) =>
    `let last = null; module.exports = async (req) => {
      const before = last; last = ${remembered}; return { raw: before }; };`;
  const reader = async () => {
    const rule = { priority: 1, container: '/', transform: 'reveal' } as const;
    const { id } = await reactors.application({
      rules: [{ ...rule, permissions: ['token:read', 'token:use'] }],
    });
    return { application: { id } };
  };
  const raw = async ({ id }: Reactor, args: unknown) =>
    (await reactors.react({ id }, { args })).body.raw;

  it('is not that of a run whose arguments had a cvc', async () => {
    const code = remembering('req.args');
    const remembers = await reactors.reactor({ code });
    expect(await raw(remembers, 'one')).to.equal(null);
    expect(await raw(remembers, `{{ ${card} }}`)).to.equal(null);
    // The context of before.
    expect(await raw(remembers, 'two')).to.equal('one');
    expect(await raw(remembers, 'three')).to.equal('two');
  });

  it('is not that of a run that has read a cvc, or called what has', async () => {
    const inner = await reactors.script('return { raw: req.args }');
    const calls = [
      `(await req.bt.tokens.retrieve('${card}')).data`,
      `await req.bt.detokenize({ a: '{{ ${card} }}' })`,
      `await req.bt.reactors.react('${inner.id}', { args: '{{ ${card} }}' })`,
    ];
    for (const one of calls) {
      const code = remembering(`req.args === 'cvc' ? ${one} : req.args`);
      const remembers = await reactors.reactor({ code, ...(await reader()) });
      expect(await raw(remembers, 'one'), one).to.equal(null);
      expect(await raw(remembers, 'cvc'), one).to.equal('one');
      expect(await raw(remembers, 'two'), one).to.equal(null);
      expect(await raw(remembers, 'three'), one).to.equal('two');
    }
  });

  it('is not that of a transform, which sees more than is known of', async () => {
    const { id } = await reactors.application({
      rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:use'] }],
    });
    const code = `let last = null; module.exports = async (req) => {
      const before = last; last = req.args.body;
      throw new (require('@basis-theory/basis-theory-reactor-formulas-sdk-js')
        .CustomHttpResponseError)({ status: 200, headers: {}, body: { before } }); };`;
    const { body } = await reactors.manage('POST /proxies', {
      json: {
        ...{ name: 'Remembers', destination_url: 'http://127.0.0.1:9' },
        ...{ application: { id }, request_transform: { code } },
      },
    });
    const headers = { 'bt-proxy-key': String(body.key) };
    for (const json of [{ card: `{{ ${card} }}` }, { no: 'card' }, {}]) {
      const answer = await call(reactors.url, 'POST /proxy', { key: reactors.key, headers, json });
      expect(answer.body, answer.text).to.deep.equal({ before: null });
    }
  });

  it('is not that of an asynchronous run with a cvc', async () => {
    const remembers = await reactors.reactor({ code: remembering('req.args') });
    const line = `/reactors/${remembers.id}`;
    const asyncRaw = async (args: unknown) => {
      const json = { args };
      const { key } = reactors;
      const { body } = await call(reactors.url, `POST ${line}/react-async`, { key, json });
      const result = `GET ${line}/results/${body.asyncReactorRequestId}`;
      let answer = await call(reactors.url, result, { key });
      while (answer.status === 404) answer = await call(reactors.url, result, { key });
      return answer.body.raw;
    };
    expect(await asyncRaw('one')).to.equal(null);
    expect(await asyncRaw(`{{ ${card} }}`)).to.equal(null);
    expect(await asyncRaw('two')).to.equal('one');
  });
});
