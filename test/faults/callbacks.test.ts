/** Receivers of callbacks that fail in every way, and that nothing is lost by it (attack 141, F-33). */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import type { AccessRule } from '../../shared/access/access-rules.ts';
import {
  type CallbackReceiver,
  type ReceivedCallback,
  startCallbackReceiver,
} from '../api/reactors/callback-receiver.ts';
import { type JobRunner, startJobRunner } from '../api/reactors/job-runner.ts';
import { type Reactor, type Reactors, startReactors } from '../api/reactors/reactors.ts';

const USE: AccessRule = {
  ...{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:use'] },
};

describe('callbacks whose receiver fails', () => {
  const times = { firstRetryMs: 40, deliveryMs: 1_000 };
  let reactors: Reactors;
  let jobs: JobRunner;
  let receiver: CallbackReceiver;
  let echo: Reactor;
  before(async () => {
    reactors = await startReactors();
    jobs = await startJobRunner(reactors, { times });
    echo = await reactors.script('return { raw: req.args }');
  });
  beforeEach(async () => {
    receiver = await startCallbackReceiver();
  });
  afterEach(async () => {
    await receiver?.close();
  });
  after(async () => {
    await jobs?.stop();
    await reactors?.stop();
  });

  const send = async (args: unknown): Promise<void> => {
    const answer = await reactors.react(echo, { args, callback_url: receiver.url });
    expect(answer.status, answer.text).to.equal(202);
  };
  /** Settles when no callback is waiting to be sent any more. */
  const settled = async (): Promise<void> => {
    for (;;) {
      const { rows } = await reactors.control.pool.query(
        'SELECT count(*)::int AS n FROM jobs WHERE finished_at IS NULL',
      );
      if (rows[0].n === 0) return;
      await delay(20);
    }
  };
  const expectSame = (callbacks: readonly ReceivedCallback[]): void => {
    for (const name of ['webhook-id', 'bt-trace-id']) {
      expect(new Set(callbacks.map(({ headers }) => headers[name])).size, name).to.equal(1);
    }
    expect(new Set(callbacks.map(({ text }) => text)).size).to.equal(1);
  };

  it('are sent again to one that was down, each under its own id', async () => {
    await receiver.close();
    const count = 10;
    for (let index = 0; index < count; index += 1) await send(index);
    const since = Date.now();
    while (!(await jobs.metrics()).includes('deliveries_total{outcome="failed"}')) await delay(20);
    await receiver.listen();
    await settled();
    expect(Date.now() - since).to.be.lessThan(60_000);
    const values = receiver.received.map(({ body }) => Number(body.raw));
    expect(new Set(values)).to.deep.equal(new Set(Array.from({ length: count }, (_, n) => n)));
    const ids = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
    expect(ids.size).to.equal(count);
  });

  const broken: [what: string, breakIt: (res: ServerResponse) => unknown][] = [
    ['answers 500', (res) => res.writeHead(500).end()],
    ['answers 404', (res) => res.writeHead(404).end('no')],
    ['redirects', (res) => res.writeHead(301, { location: receiver.url }).end()],
    ['redirects by method', (res) => res.writeHead(307, { location: '/elsewhere' }).end()],
    ['closes', (res) => res.destroy()],
    ['closes in its head', (res) => res.socket?.end('HTTP/1.1 200 O')],
    ['answers what is no HTTP', (res) => res.socket?.end('220 mail.example ESMTP\r\n\r\n')],
    ['never answers', () => undefined],
  ];
  for (const [what, breakIt] of broken) {
    it(`are sent again to one that ${what}, and not once it has acknowledged`, async () => {
      receiver.answer = (res, index) => (index < 2 ? breakIt(res) : res.writeHead(200).end('ok'));
      await send(what);
      await settled();
      expect(receiver.received).to.have.length(3);
      expect(receiver.received.map(({ path }) => path)).to.deep.equal(Array(3).fill('/hook?a=1'));
      expectSame(receiver.received);
    });
  }

  it('are told of in the log when they fail first, with why and without where', async () => {
    const lines: unknown[][] = [];
    await jobs.stop();
    jobs = await startJobRunner(reactors, { times, onWarning: (...line) => lines.push(line) });
    receiver.answer = (res, index) => res.writeHead(index < 3 ? 503 : 204).end();
    await send('unavailable');
    await settled();
    await receiver.close();
    await send('down');
    while (lines.length < 2) await delay(20);
    await receiver.listen();
    await settled();
    expect(receiver.received).to.have.length(5);
    const { host } = new URL(receiver.url);
    const whys: unknown[] = [{ status: 503 }, { reason: 'connect_failed (ECONNREFUSED)' }];
    expect(lines).to.have.length(whys.length);
    for (const [index, [fields, text]] of lines.entries()) {
      expect(text).to.equal('a callback was not acknowledged');
      expect(fields).to.include({ outcome: 'failed', attempt: 1 });
      expect(fields).to.deep.include(whys[index]);
      const { delay_ms, request_id } = fields as Record<string, unknown>;
      expect(delay_ms).to.be.within(36, 44);
      expect(receiver.received.map(({ headers }) => headers['webhook-id'])).to.include(request_id);
      expect(JSON.stringify(fields)).not.to.contain(host).and.not.to.contain('hook');
    }
    await jobs.stop();
    jobs = await startJobRunner(reactors, { times });
  });

  it('end with 410', async () => {
    receiver.answer = (res) => res.writeHead(410).end();
    await send('gone');
    await settled();
    expect(receiver.received).to.have.length(1);
    expect(await jobs.metrics()).to.match(/deliveries_total\{outcome="refused"\} 1/);
  });

  it('end after ten retries; the result is still there to be asked for', async () => {
    await jobs.stop();
    jobs = await startJobRunner(reactors, { times: { firstRetryMs: 1 } });
    receiver.answer = (res) => res.writeHead(503).end();
    await send('never');
    await settled();
    expect(receiver.received).to.have.length(11);
    expectSame(receiver.received);
    expect(await jobs.metrics()).to.match(/deliveries_total\{outcome="given_up"\} 1/);
    const id = receiver.received[0]?.headers['webhook-id'];
    const line = `GET /reactors/${echo.id}/results/${id}`;
    expect((await reactors.manage(line, { key: reactors.key })).body.raw).to.equal('never');
    await jobs.stop();
    jobs = await startJobRunner(reactors, { times });
  });

  it('wait as long as Retry-After says', async () => {
    const at: number[] = [];
    receiver.answer = (res, index) => {
      at.push(performance.now());
      return res.writeHead(index === 0 ? 429 : 200, { 'retry-after': '1' }).end();
    };
    await send('later');
    await settled();
    expect(at).to.have.length(2);
    // By the database's clock, which is not this one's: without it they were 40 ms apart.
    expect((at[1] as number) - (at[0] as number)).to.be.greaterThan(900);
  });

  it('are acknowledged by a status, however much comes behind it', async () => {
    let sent = 0;
    let cut = false;
    receiver.answer = async (res) => {
      res.writeHead(200, { 'content-length': String(1024 * 1024 * 1024) });
      res.on('close', () => {
        cut = true;
      });
      const chunk = Buffer.alloc(64 * 1024);
      while (!cut && sent < 1024 * 1024 * 1024) {
        sent += chunk.length;
        if (!res.write(chunk)) await Promise.race([delay(100)]);
      }
    };
    await send('much');
    await settled();
    while (!cut) await delay(20);
    expect(receiver.received).to.have.length(1);
    expect(sent).to.be.lessThan(64 * 1024 * 1024);
  });

  it('are not sent where the guard lets nothing through, even when that changed', async () => {
    const strict = await startJobRunner(reactors, {
      ...{ times, settings: { SALLYPORT_EGRESS_ALLOW: '10.0.0.0/8' } },
    });
    await jobs.stop();
    await send('guarded');
    const refused = /deliveries_total\{outcome="failed"\} [1-9]/;
    while (!refused.test(await strict.metrics())) await delay(20);
    expect(receiver.received).to.have.length(0);
    await strict.stop();
    jobs = await startJobRunner(reactors, { times });
    await settled();
    expect(receiver.received).to.have.length(1);
  });

  const losses: [what: string, status: number, lose: (id: string) => Promise<unknown>][] = [
    ['its application', 401, (id) => reactors.manage(`DELETE /applications/${id}`)],
    [
      'the right to the container',
      403,
      (id) =>
        reactors.manage(`PUT /applications/${id}`, {
          json: { name: 'x', rules: [{ ...USE, container: '/other/' }] },
        }),
    ],
  ];
  for (const [what, status, lose] of losses) {
    it(`do not send a value when its caller has lost ${what} while the receiver was down`, async () => {
      const token = await reactors.token({ type: 'token', data: 'a secret' });
      const { id, key } = await reactors.application({ rules: [USE] });
      await receiver.close();
      const json = { args: `{{ ${token} }}`, callback_url: receiver.url };
      expect((await reactors.react(echo, json, key)).status).to.equal(202);
      const failed = async () =>
        Number(/deliveries_total\{outcome="failed"\} (\d+)/.exec(await jobs.metrics())?.[1] ?? 0);
      const before = await failed();
      while ((await failed()) === before) await delay(20);
      await lose(id);
      await receiver.listen();
      await settled();
      const [delivered] = receiver.received;
      expect(delivered?.body.status).to.equal(status);
      expect(delivered?.text).not.to.contain('a secret');
    });
  }

  it('are signed anew each time', async () => {
    const { body } = await reactors.manage('POST /tenants/self/webhook-secret');
    const stamps = new Set<unknown>();
    receiver.answer = async (res, index) => {
      if (index === 0) await delay(1_001);
      res.writeHead(index === 0 ? 503 : 200).end();
    };
    await send('signed');
    await settled();
    expect(receiver.received.length).to.be.greaterThan(1);
    for (const { text, headers } of receiver.received) {
      new Webhook(String(body.secret)).verify(text, headers as Record<string, string>);
      stamps.add(headers['webhook-timestamp']);
    }
    expect(stamps.size).to.be.greaterThan(1);
    expectSame(receiver.received);
  });
});
