/** Asynchronous reactors: what is accepted, what is delivered, what can be asked for (facts 9.5). */
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { call, type JsonObject } from '../../support/http-call.ts';
import { type CallbackReceiver, startCallbackReceiver } from './callback-receiver.ts';
import { type JobRunner, startJobRunner } from './job-runner.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

describe('asynchronous reactors', () => {
  let reactors: Reactors;
  let jobs: JobRunner;
  let receiver: CallbackReceiver;
  let echo: Reactor;
  before(async () => {
    reactors = await startReactors();
    jobs = await startJobRunner(reactors);
    receiver = await startCallbackReceiver();
    echo = await reactors.script('return { raw: req.args }');
  });
  after(async () => {
    await jobs?.stop();
    await receiver?.close();
    await reactors?.stop();
  });

  const asyncly = async (reactor: Reactor, json: JsonObject = {}, key = reactors.key) => {
    const line = `POST /reactors/${reactor.id}/react-async`;
    const answer = await call(reactors.url, line, { key, json });
    expect(answer.status, answer.text).to.equal(202);
    expect(Object.keys(answer.body)).to.deep.equal(['asyncReactorRequestId']);
    return String(answer.body.asyncReactorRequestId);
  };
  const result = (reactor: Reactor, id: string, key = reactors.key) =>
    call(reactors.url, `GET /reactors/${reactor.id}/results/${id}`, { key });
  const ended = async (reactor: Reactor, id: string, key = reactors.key) => {
    for (;;) {
      const answer = await result(reactor, id, key);
      if (answer.status !== 404) return answer;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };

  /** Status, type and text of what need not be JSON. */
  const plain = async (path: string, body?: string) => {
    const headers = { 'bt-api-key': reactors.key, 'content-type': 'application/json' };
    const sent = body === undefined ? { headers } : { headers, body, method: 'POST' };
    const response = await fetch(reactors.url + path, sent);
    return [response.status, response.headers.get('content-type'), await response.text()];
  };

  it('answers 202 and POSTs what the run answers to the callback, in either spelling', async () => {
    const token = await reactors.token({ type: 'token', data: 'a secret' });
    for (const [index, names] of [
      ['callback_url', 'timeout_ms'],
      ['callbackUrl', 'timeoutMs'],
    ].entries()) {
      const [callback = '', timeout = ''] = names;
      const json = { args: `{{ ${token} }}`, [callback]: receiver.url, [timeout]: 10_000 };
      const headers = { 'bt-trace-id': `trace-${index}` };
      const accepted = await call(reactors.url, `POST /reactors/${echo.id}/react`, {
        ...{ key: reactors.key, json, headers },
      });
      expect([accepted.status, accepted.text]).to.deep.equal([202, '{}']);
      const delivered = await receiver.callback(index);
      expect([delivered.method, delivered.path]).to.deep.equal(['POST', '/hook?a=1']);
      expect(delivered.body).to.deep.equal({ raw: 'a secret' });
      expect(delivered.headers['content-type']).to.equal('application/json');
      expect(delivered.headers['bt-trace-id']).to.equal(accepted.headers.get('bt-trace-id'));
      expect(delivered.headers['webhook-signature']).to.equal(undefined);
      const id = String(delivered.headers['webhook-id']);
      expect((await result(echo, id)).body).to.deep.equal({ raw: 'a secret' });
    }
  });

  it('keeps the result for whoever asks, as it would have been answered', async () => {
    const failing = await reactors.script('throw new Error("boom")');
    const synchronous = await reactors.react(failing);
    const answer = await ended(failing, await asyncly(failing));
    expect([answer.status, answer.text]).to.deep.equal([500, synchronous.text]);
    expect(answer.headers.get('content-type')).to.equal(synchronous.headers.get('content-type'));
    const made = await reactors.script('return { raw: [1.0, "x"], tokenize: { a: "made" } }');
    const { body } = await ended(made, await asyncly(made));
    expect(body.raw).to.deep.equal([1, 'x']);
    const id = (body.tokens as JsonObject).a;
    const token = await call(reactors.url, `GET /tokens/${id}`, { key: reactors.key });
    expect(token.body.data).to.equal('made');
  });

  it('tells the audit trail of each token when it is used, by whom and by which request', async () => {
    const token = await reactors.token({ type: 'token', data: 'audited' });
    const { id, key } = await reactors.application({ permissions: ['token:use'] });
    await ended(echo, await asyncly(echo, { args: `{{ ${token} }}` }, key), key);
    for (;;) {
      const { rows } = await reactors.control.pool.query(
        `SELECT actor_id, operation, via_type, via_id, denied, trace_id <> '' AS traced
         FROM audit_log WHERE entity_id = $1 AND operation = 'use'`,
        [token],
      );
      if (rows.length === 0) continue;
      expect(rows).to.deep.equal([
        {
          ...{ actor_id: id, operation: 'use', via_type: 'reactor', via_id: echo.id },
          ...{ denied: false, traced: true },
        },
      ]);
      break;
    }
  });

  it('signs with the tenant’s secret, and for a day with the one that it replaced', async () => {
    const secrets: string[] = [];
    for (let round = 0; round < 2; round += 1) {
      const made = await reactors.manage('POST /tenants/self/webhook-secret');
      expect(made.status).to.equal(201);
      secrets.push(String(made.body.secret));
    }
    expect(secrets[0]).not.to.equal(secrets[1]);
    const count = receiver.received.length;
    await reactors.react(echo, { args: 'signed', callback_url: receiver.url });
    const { text, headers } = await receiver.callback(count);
    for (const secret of secrets) {
      expect(new Webhook(secret).verify(text, headers as Record<string, string>)).to.deep.equal({
        raw: 'signed',
      });
      expect(() => new Webhook(secret).verify(`${text} `, headers as never)).to.throw();
    }
    expect(String(headers['webhook-signature']).split(' ')).to.have.length(2);
  });

  it('runs for as long as the call says: ten seconds with a callback, longer without', async function () {
    this.timeout(60_000);
    const slow = await reactors.script(
      'await new Promise((resolve) => setTimeout(resolve, 11_000)); return { raw: "slow" }',
    );
    const count = receiver.received.length;
    await reactors.react(slow, { callback_url: receiver.url });
    const longer = await asyncly(slow);
    const { body } = await receiver.callback(count);
    expect(body.detail).to.equal('Reactor Runtime Error');
    const message = 'The reactor timed out: it was not done within 10 s, waiting included.';
    expect(body.errors).to.deep.equal({ error: [message] });
    expect((await ended(slow, longer)).body).to.deep.equal({ raw: 'slow' });
  });

  it('sends a custom response as JSON, whatever it calls itself', async () => {
    const cases: [string, unknown][] = [
      ['{ status: 201, headers: {}, body: { a: 1 } }', { a: 1 }],
      ['{ status: 200, headers: { "content-type": "text/plain" }, body: "a text" }', 'a text'],
      ['{ status: 204, headers: {} }', {}],
    ];
    for (const [response, expected] of cases) {
      const custom = await reactors.script(`
        const { CustomHttpResponseError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
        throw new CustomHttpResponseError(${response})`);
      const count = receiver.received.length;
      await reactors.react(custom, { callback_url: receiver.url });
      const { body, headers } = await receiver.callback(count);
      expect(body).to.deep.equal(expected);
      expect(headers['content-type']).to.equal('application/json');
      const kept = await plain(`/reactors/${custom.id}/results/${headers['webhook-id']}`);
      expect(kept).to.deep.equal(await plain(`/reactors/${custom.id}/react`, '{}'));
    }
  });
});
