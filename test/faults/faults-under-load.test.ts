/**
 * Processes die or hang while callers write and read: what was acknowledged is there afterwards, what
 * cannot be served is a 503 that says when to come back, and everything recovers by itself.
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import pg from 'pg';
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { createApplication } from '../security/planes.ts';
import type { Sample } from '../support/callers.ts';
import { type Answer, call } from '../support/http-call.ts';
import { type Installation, install, postgresPids } from './installation.ts';
import {
  CALLERS,
  expectOnly,
  RECOVERED_ANSWERS,
  TokenLoad,
  until,
  WARM_ANSWERS,
  within,
} from './token-load.ts';

describe('under load', function () {
  this.timeout(120_000);
  let installation: Installation;
  let key: string;
  let load: TokenLoad;

  before(async () => {
    installation = await install();
    const { managementKey } = installation;
    ({ key } = await createApplication(installation.baseUrl(), { managementKey }));
    load = new TokenLoad(installation, key);
    await load.write('first');
  });
  const dispatcher = getGlobalDispatcher();
  afterEach(() => setGlobalDispatcher(dispatcher));
  after(() => installation?.remove());

  const status = (answers: readonly Sample[], wanted: number) =>
    answers.filter((sample) => sample.status === wanted);

  it('a data plane that is killed is replaced, on the same address', async () => {
    const before = await installation.pidOf('data-plane');
    const samples = await load.breakIt(async () => {
      process.kill(before, 'SIGKILL');
    });
    expectOnly(samples, [0]);
    expect(status(samples, 0)).not.to.deep.equal([]);
    expect(await installation.pidOf('data-plane')).not.to.equal(before);
    await load.expectAllThere();
  });

  it('a control plane that is killed is not missed by any token request', async () => {
    const { managementKey } = installation;
    const manage = () => call(installation.baseUrl(), 'GET /tenants/self', { key: managementKey });
    let refused: Answer<unknown> | undefined;
    const samples = await load.breakIt(async () => {
      process.kill(await installation.pidOf('control-plane'), 'SIGKILL');
      refused = await manage();
      await until(async () => (await manage()).status === 200);
    });
    expectOnly(samples, []);
    expect(refused?.status).to.equal(503);
    expect(refused?.headers.get('retry-after')).to.match(/^[1-9][0-9]*$/);
  });

  it('a Postgres that is killed costs 503s, and nothing that was acknowledged', async () => {
    const before = await installation.pidOf('postmaster');
    const planes = [
      await installation.pidOf('data-plane'),
      await installation.pidOf('control-plane'),
    ];
    const samples = await load.breakIt(async () => {
      process.kill(before, 'SIGKILL');
    });
    expectOnly(samples, [503]);
    expect(status(samples, 503)).not.to.deep.equal([]);
    expect(await installation.pidOf('postmaster')).not.to.equal(before);
    expect(planes).to.deep.equal([
      await installation.pidOf('data-plane'),
      await installation.pidOf('control-plane'),
    ]);
    await load.expectAllThere();
  });

  it('connections that are cut again and again end no process and lose no write', async () => {
    const before = await installation.pidOf('data-plane');
    const client = new pg.Client({ connectionString: await installation.adminConnectionString() });
    await client.connect();
    const callers = load.start();
    let cut = 0;
    for (let round = 1; round <= 8; round += 1) {
      await within('load', callers.answered(round * WARM_ANSWERS));
      const { rowCount } = await client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE usename = 'sallyport' AND pid <> pg_backend_pid()`,
      );
      cut += rowCount ?? 0;
    }
    await within('recovered', callers.servedInARow(RECOVERED_ANSWERS));
    const samples = await callers.stop();
    await client.end();
    expect(cut).to.be.greaterThan(8);
    expectOnly(samples, [503]);
    expect(await installation.pidOf('data-plane')).to.equal(before);
    await load.expectAllThere();
  });

  it('a Postgres that hangs is a 503, not a hang', async () => {
    const samples = await load.breakIt(async () => {
      const pids = new Set<number>();
      // Until none is new: the server may have started one for a connection while they were listed.
      for (;;) {
        const fresh = (await postgresPids(installation.dataDir)).filter((pid) => !pids.has(pid));
        if (fresh.length === 0) break;
        for (const pid of fresh) process.kill(pid, 'SIGSTOP');
        for (const pid of fresh) pids.add(pid);
      }
      // Its own children end with it or go on with it; none is left behind stopped.
      const refused = await within('refused', load.write('while-it-hangs')).finally(() => {
        for (const pid of pids) process.kill(pid, 'SIGCONT');
      });
      expect(refused.status).to.equal(503);
      expect(refused.headers.get('retry-after')).to.match(/^[1-9][0-9]*$/);
    });
    expectOnly(samples, [503]);
    await load.expectAllThere();
  });

  it('a lock that is held for long is a 503 for its own table alone', async () => {
    const client = new pg.Client({ connectionString: await installation.adminConnectionString() });
    await client.connect();
    const samples = await load.breakIt(async () => {
      const written = installation.output().length;
      await client.query('BEGIN; LOCK TABLE token_terms');
      const { status: refused } = await within('refused', load.write('while-it-is-locked'));
      expect(refused).to.equal(503);
      expect((await load.read('first')).status).to.equal(200);
      await client.query('ROLLBACK');
      // By the limit of locks, which is half of a statement's (faults/lost-connections holds both).
      const isTold = () => installation.output().slice(written).includes('"code":"55P03"');
      await until(async () => isTold());
    });
    await client.end();
    expectOnly(samples, [503]);
    expect(
      samples.filter(({ line, status: answered }) => line.startsWith('GET') && answered !== 200),
    ).to.deep.equal([]);
    await load.expectAllThere();
  });

  it('a kill -9 of everything but Postgres loses nothing: the next start takes over', async () => {
    const orphan = await installation.pidOf('postmaster');
    const callers = load.start();
    await within('warm', callers.answered(WARM_ANSWERS));
    const killed = installation.killAllButPostgres();
    const samples = await callers.stop();
    await killed;
    expectOnly(samples, [0]);
    await installation.start();
    expect(await installation.pidOf('postmaster')).not.to.equal(orphan);
    await load.expectAllThere();
  });

  it('a SIGTERM lets every request that was let in end, and exits with 0', async () => {
    const slow = await openSlowWrite();
    // Each caller has its connection and never leaves it idle: it is told to go, not cut off as it writes.
    setGlobalDispatcher(new Agent({ connections: CALLERS }));
    const callers = load.start();
    await within('warm', callers.answered(WARM_ANSWERS));
    const stopped = installation.stop();
    await within('no new connections', callers.unserved(1));
    slow.finish();
    const { status: answered, connection } = await slow.answer;
    const { code, signal } = await within('stopped', stopped);
    const samples = await callers.stop();
    expect([answered, connection]).to.deep.equal([201, 'close']);
    expect([code, signal]).to.deep.equal([0, null]);
    // Refused connections, and nothing that was half served.
    expectOnly(samples, [0]);
    const torn = samples.filter(
      (sample) => sample.status === 0 && !sample.text.includes('ECONNREFUSED'),
    );
    expect(torn.slice(0, 3)).to.deep.equal([]);
    await installation.start();
    await load.expectAllThere();
    expect((await load.read('slow')).status).to.equal(200);
  });

  it('a SIGTERM lets a slow reader have all of a large answer', async () => {
    const ids = Array.from({ length: 16 }, (_, index) => `large-${index}`);
    for (const id of ids) {
      const json = { id, type: 'token', data: 'x'.repeat(1_000_000) };
      await call(installation.baseUrl(), 'POST /tokens', { key, json });
    }
    const url = `${installation.baseUrl()}/tokens?size=100&id=${ids.join('&id=')}`;
    const reading = request(url, { agent: false, headers: { 'bt-api-key': key } }).end();
    const [response]: IncomingMessage[] = await once(reading, 'response');
    expect(response?.statusCode).to.equal(200);
    const stopped = installation.stop();
    const isServed = () => fetch(installation.baseUrl()).then(() => true);
    const isRefused = () =>
      isServed()
        .catch(() => false)
        .then((served) => !served);
    await until(isRefused);
    // A reader that reads nothing for longer than idle connections are left open.
    for (let attempt = 1; attempt <= 400; attempt += 1) await isRefused();
    const body = await text(response as IncomingMessage);
    expect(JSON.parse(body).data).to.have.lengthOf(ids.length);
    expect((await within('stopped', stopped)).code).to.equal(0);
    await installation.start();
  });

  /** A write that was let in and waits with its body until `finish`. */
  async function openSlowWrite() {
    const sending = request(`${installation.baseUrl()}/tokens`, {
      method: 'POST',
      agent: false,
      headers: { 'bt-api-key': key, 'content-type': 'application/json', expect: '100-continue' },
    });
    sending.flushHeaders();
    const answer = once(sending, 'response').then(([response]: IncomingMessage[]) => {
      response?.resume();
      return { status: response?.statusCode, connection: response?.headers.connection };
    });
    await once(sending, 'continue');
    const finish = (): void => {
      load.acknowledged.set('slow', 'data of slow');
      sending.end(JSON.stringify({ id: 'slow', type: 'token', data: 'data of slow' }));
    };
    return { answer, finish };
  }
});
