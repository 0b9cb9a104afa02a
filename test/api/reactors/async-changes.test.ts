/**
 * What happens between the acceptance of an asynchronous call and its run: the code stays as it was, all
 * else is as it is when it runs (attacks C-10, rows 113, 143 and 144).
 */
import { expect } from 'chai';
import { call, type JsonObject } from '../../support/http-call.ts';
import { startCallbackReceiver } from './callback-receiver.ts';
import { type HeldDestination, startHeldDestination } from './held-destination.ts';
import { type JobRunner, startJobRunner } from './job-runner.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

interface Case {
  readonly what: string;
  readonly status: number;
  /** A part of what is delivered. */
  readonly says: string;
  readonly change: (context: { reactor: Reactor; application: string; token: string }) => unknown;
}

describe('an asynchronous call that waits', () => {
  let reactors: Reactors;
  let destination: HeldDestination;
  let jobs: JobRunner | undefined;
  before(async () => {
    reactors = await startReactors();
    destination = await startHeldDestination();
  });
  afterEach(async () => {
    await jobs?.stop();
    jobs = undefined;
  });
  after(async () => {
    await destination?.stop();
    await reactors?.stop();
  });

  const use = (container = '/', transform = 'reveal') => ({
    ...{ priority: 1, container, transform, permissions: ['token:use'] },
  });
  const asyncly = async (reactor: Reactor, json: JsonObject, key: string): Promise<string> => {
    const line = `POST /reactors/${reactor.id}/react-async`;
    const answer = await call(reactors.url, line, { key, json });
    expect(answer.status, answer.text).to.equal(202);
    return String(answer.body.asyncReactorRequestId);
  };
  /** Settles when it has its result, whoever may see it. */
  const ended = async (id: string): Promise<void> => {
    for (;;) {
      const { rows } = await reactors.control.pool.query(
        'SELECT 1 FROM reactor_results WHERE id = $1',
        [id],
      );
      if (rows.length > 0) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };

  const cases: Case[] = [
    {
      what: 'the token is deleted',
      status: 400,
      says: 'Failed to detokenize some tokens',
      change: ({ token }) => call(reactors.url, `DELETE /tokens/${token}`, { key: reactors.key }),
    },
    {
      what: 'the token expires',
      status: 400,
      says: 'Failed to detokenize some tokens',
      change: ({ token }) =>
        reactors.control.pool.query('UPDATE tokens SET expires_at = clock_now() WHERE id = $1', [
          token,
        ]),
    },
    {
      what: 'the right to its container goes',
      status: 403,
      says: 'token:use',
      change: ({ application }) =>
        reactors.manage(`PUT /applications/${application}`, {
          json: { name: 'x', rules: [use('/other/')] },
        }),
    },
    {
      what: 'its key is replaced',
      status: 401,
      says: 'not valid any more',
      change: ({ application }) => reactors.manage(`POST /applications/${application}/regenerate`),
    },
    {
      what: 'its application is deleted',
      status: 401,
      says: 'not valid any more',
      change: ({ application }) => reactors.manage(`DELETE /applications/${application}`),
    },
    {
      what: 'the reactor is deleted',
      status: 404,
      says: 'The reactor does not exist',
      change: ({ reactor }) => reactors.manage(`DELETE /reactors/${reactor.id}`),
    },
  ];

  it('ends with an error and without its code being run when its right or its token goes', async () => {
    const waiting: { one: Case; delivered: Promise<JsonObject> }[] = [];
    const started = destination.requests;
    const receiver = await startCallbackReceiver();
    const bodyAt = async (path: string): Promise<JsonObject> => {
      for (let index = 0; ; index += 1) {
        const callback = await receiver.callback(index);
        if (callback.path === path) return callback.body;
      }
    };
    for (const [index, one] of cases.entries()) {
      const { id: application, key } = await reactors.application({ rules: [use() as never] });
      const token = await reactors.token({ type: 'token', data: 'a secret' });
      const reactor = await reactors.script(
        `await fetch('${destination.url}'); return { raw: req.args }`,
      );
      const callback_url = new URL(`/${index}`, receiver.url).href;
      const json = { args: `{{ ${token} }}`, callback_url };
      expect((await reactors.react(reactor, json, key)).status).to.equal(202);
      await one.change({ reactor, application, token });
      waiting.push({ one, delivered: bodyAt(`/${index}`) });
    }
    jobs = await startJobRunner(reactors);
    for (const { one, delivered } of waiting) {
      const body = await delivered;
      expect(body.status, one.what).to.equal(one.status);
      expect(JSON.stringify(body), one.what).to.contain(one.says).and.not.to.contain('a secret');
    }
    expect(destination.requests).to.equal(started);
    await receiver.close();
  });

  it('says so when a cvc that was there is not kept any more, and never passes null', async () => {
    const card = { number: '4242424242424242', expiration_month: 1, expiration_year: 2099 };
    const reactor = await reactors.script('return { raw: req.args }');
    const withCvc = await reactors.token({ type: 'card', data: { ...card, cvc: '123' } });
    const without = await reactors.token({ type: 'card', data: card });
    const ids = await Promise.all(
      [withCvc, without].map((token) =>
        asyncly(reactor, { args: { card: `{{ ${token} }}` } }, reactors.key),
      ),
    );
    await reactors.control.pool.query('UPDATE token_cvcs SET due_at = clock_now()');
    jobs = await startJobRunner(reactors);
    for (const id of ids) await ended(id);
    const [gone, never] = await Promise.all(
      ids.map((id) =>
        call(reactors.url, `GET /reactors/${reactor.id}/results/${id}`, { key: reactors.key }),
      ),
    );
    expect([gone?.status, gone?.text]).to.satisfy(
      ([status, text]: [number, string]) => status === 400 && text.includes('the cvc of'),
    );
    expect(gone?.text).not.to.contain('4242');
    expect(never?.body.raw).to.deep.equal({ card });
  });

  it('runs the code that was accepted, with the configuration as it is', async () => {
    const reactor = await reactors.reactor({
      code: 'module.exports = (req) => ({ raw: ["old", req.configuration.WHERE] })',
      configuration: { WHERE: 'before' },
    });
    const accepted = await asyncly(reactor, {}, reactors.key);
    await reactors.manage(`PUT /reactors/${reactor.id}`, {
      json: {
        name: 'Reactor',
        code: 'module.exports = (req) => ({ raw: ["new", req.configuration.WHERE] })',
        configuration: { WHERE: 'after' },
      },
    });
    const later = await asyncly(reactor, {}, reactors.key);
    jobs = await startJobRunner(reactors);
    for (const [id, code] of [
      [accepted, 'old'],
      [later, 'new'],
    ]) {
      await ended(String(id));
      const answer = await call(reactors.url, `GET /reactors/${reactor.id}/results/${id}`, {
        key: reactors.key,
      });
      expect(answer.body.raw).to.deep.equal([code, 'after']);
    }
  });

  it('is asked for its right again before a fetch, and before its result is kept', async () => {
    const { id: application, key } = await reactors.application({ rules: [use() as never] });
    const token = await reactors.token({ type: 'token', data: 'a secret' });
    const reactor = await reactors.script(
      `await fetch('${destination.url}/1'); await fetch('${destination.url}/2').catch(() => 0);
       return { raw: req.args, tokenize: 'made' }`,
    );
    const before = destination.paths.length;
    destination.hold = () => reactors.manage(`DELETE /applications/${application}`);
    const request = await asyncly(reactor, { args: `{{ ${token} }}` }, key);
    jobs = await startJobRunner(reactors);
    await ended(request);
    destination.hold = undefined;
    expect(destination.paths.slice(before)).to.deep.equal(['/1']);
    const { rows } = await reactors.control.pool.query(
      'SELECT count(*)::int AS n FROM tokens WHERE created_by = $1',
      [application],
    );
    expect(rows[0].n).to.equal(0);
  });
});
