/**
 * Processes die or hang while callers write and read: what was acknowledged is there afterwards, what
 * cannot be served is a 503 that says when to come back, and everything recovers by itself.
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { createApplication } from '../security/planes.ts';
import { type Callers, type Sample, startCallers } from '../support/callers.ts';
import { type Answer, call } from '../support/http-call.ts';
import { type Installation, install, postgresPids } from './installation.ts';

const CALLERS = 8;
/** Enough that every caller is in the middle of something. */
const WARM_ANSWERS = 100;
/** A service that is up again answers this many in a row. */
const RECOVERED_ANSWERS = 100;
/** Long enough for a machine that is busy with other things. */
const PATIENCE_MS = 30_000;
/** The limits of one request add up to less; a hang would be far more. */
const ANSWER_MS_MAX = 10_000;

describe('under load', function () {
  this.timeout(120_000);
  let installation: Installation;
  let key: string;
  /** Acknowledged tokens: id → data. */
  const acknowledged = new Map<string, string>();
  let sequence = 0;

  before(async () => {
    installation = await install();
    const { managementKey } = installation;
    ({ key } = await createApplication(installation.baseUrl(), { managementKey }));
    await write('first');
  });
  const dispatcher = getGlobalDispatcher();
  afterEach(() => setGlobalDispatcher(dispatcher));
  after(() => installation?.remove());

  async function write(id: string): Promise<Answer<unknown>> {
    const json = { id, type: 'token', data: `data of ${id}` };
    const answer = await call(installation.baseUrl(), 'POST /tokens', { key, json });
    if (answer.status === 201) acknowledged.set(id, json.data);
    return answer;
  }

  /** A read of an acknowledged token; a wrong answer is told apart by its text. */
  async function read(id: string): Promise<Answer<unknown>> {
    const answer = await call(installation.baseUrl(), `GET /tokens/${id}`, { key });
    const isRight = answer.body.data === acknowledged.get(id);
    return answer.status !== 200 || isRight ? answer : { ...answer, status: -1 };
  }

  function load(): Callers {
    return startCallers(CALLERS, (caller) => {
      sequence += 1;
      if (caller % 2 === 0) return { line: 'POST /tokens', answer: write(`token-${sequence}`) };
      const ids = [...acknowledged.keys()];
      return { line: 'GET /tokens/{id}', answer: read(ids[sequence % ids.length] ?? '') };
    });
  }

  async function expectAllThere(): Promise<void> {
    const ids = [...acknowledged.keys()];
    while (ids.length > 0) {
      const answers = await Promise.all(ids.splice(0, 64).map(read));
      expect(answers.map(({ status }) => status)).to.satisfy((all: number[]) =>
        all.every((status) => status === 200),
      );
    }
  }

  async function within<T>(what: string, work: Promise<T>): Promise<T> {
    const timer = new AbortController();
    const late = delay(PATIENCE_MS, undefined, { signal: timer.signal }).then(() => {
      throw new Error(`${what}: not within ${PATIENCE_MS} ms`);
    });
    late.catch(() => undefined);
    return Promise.race([work, late]).finally(() => timer.abort());
  }

  /** Only 201, 200 and what the fault may cause; a 503 tells when to come back. */
  function expectOnly(samples: readonly Sample[], faulty: readonly number[]): void {
    const odd = samples.filter(({ status }) => ![200, 201, ...faulty].includes(status));
    expect(odd.slice(0, 3)).to.deep.equal([]);
    const refused = samples.filter(({ status }) => status === 503);
    expect(refused.filter(({ retryAfter }) => retryAfter === null)).to.deep.equal([]);
    expect(samples.filter(({ elapsedMs }) => elapsedMs > ANSWER_MS_MAX)).to.deep.equal([]);
  }

  /** Breaks something in the middle of the load and waits until all callers are served again. */
  async function breakIt(fault: () => Promise<void>): Promise<Sample[]> {
    const callers = load();
    try {
      await within('warm', callers.answered(WARM_ANSWERS));
      await fault();
      await within('recovered', callers.servedInARow(RECOVERED_ANSWERS));
    } finally {
      await callers.stop();
    }
    return callers.stop();
  }

  const status = (answers: readonly Sample[], wanted: number) =>
    answers.filter((sample) => sample.status === wanted);

  it('a data plane that is killed is replaced, on the same address', async () => {
    const before = await installation.pidOf('data-plane');
    const samples = await breakIt(async () => {
      process.kill(before, 'SIGKILL');
    });
    expectOnly(samples, [0]);
    expect(status(samples, 0)).not.to.deep.equal([]);
    expect(await installation.pidOf('data-plane')).not.to.equal(before);
    await expectAllThere();
  });

  it('a control plane that is killed is not missed by any token request', async () => {
    const { managementKey } = installation;
    const manage = () => call(installation.baseUrl(), 'GET /tenants/self', { key: managementKey });
    let refused: Answer<unknown> | undefined;
    const samples = await breakIt(async () => {
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
    const samples = await breakIt(async () => {
      process.kill(before, 'SIGKILL');
    });
    expectOnly(samples, [503]);
    expect(status(samples, 503)).not.to.deep.equal([]);
    expect(await installation.pidOf('postmaster')).not.to.equal(before);
    expect(planes).to.deep.equal([
      await installation.pidOf('data-plane'),
      await installation.pidOf('control-plane'),
    ]);
    await expectAllThere();
  });

  it('connections that are cut again and again end no process and lose no write', async () => {
    const before = await installation.pidOf('data-plane');
    const client = new pg.Client({ connectionString: await installation.adminConnectionString() });
    await client.connect();
    const callers = load();
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
    await expectAllThere();
  });

  it('a Postgres that hangs is a 503, not a hang', async () => {
    const samples = await breakIt(async () => {
      const pids = await postgresPids(installation.dataDir);
      for (const pid of pids) process.kill(pid, 'SIGSTOP');
      // Its own children end with it or go on with it; none is left behind stopped.
      const refused = await within('refused', write('while-it-hangs')).finally(() => {
        for (const pid of pids) process.kill(pid, 'SIGCONT');
      });
      expect(refused.status).to.equal(503);
      expect(refused.headers.get('retry-after')).to.match(/^[1-9][0-9]*$/);
    });
    expectOnly(samples, [503]);
    await expectAllThere();
  });

  it('a lock that is held for long is a 503 for its own table alone', async () => {
    const client = new pg.Client({ connectionString: await installation.adminConnectionString() });
    await client.connect();
    const samples = await breakIt(async () => {
      await client.query('BEGIN; LOCK TABLE token_terms');
      const { status: refused } = await within('refused', write('while-it-is-locked'));
      expect(refused).to.equal(503);
      expect((await read('first')).status).to.equal(200);
      await client.query('ROLLBACK');
    });
    await client.end();
    expectOnly(samples, [503]);
    expect(
      samples.filter(({ line, status: answered }) => line.startsWith('GET') && answered !== 200),
    ).to.deep.equal([]);
    await expectAllThere();
  });

  it('a kill -9 of everything but Postgres loses nothing: the next start takes over', async () => {
    const orphan = await installation.pidOf('postmaster');
    const callers = load();
    await within('warm', callers.answered(WARM_ANSWERS));
    const killed = installation.killAllButPostgres();
    const samples = await callers.stop();
    await killed;
    expectOnly(samples, [0]);
    await installation.start();
    expect(await installation.pidOf('postmaster')).not.to.equal(orphan);
    await expectAllThere();
  });

  it('a SIGTERM lets every request that was let in end, and exits with 0', async () => {
    const slow = await openSlowWrite();
    // Each caller has its connection and never leaves it idle: it is told to go, not cut off as it writes.
    setGlobalDispatcher(new Agent({ connections: CALLERS }));
    const callers = load();
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
    await expectAllThere();
    expect((await read('slow')).status).to.equal(200);
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
      acknowledged.set('slow', 'data of slow');
      sending.end(JSON.stringify({ id: 'slow', type: 'token', data: 'data of slow' }));
    };
    return { answer, finish };
  }

  async function until(isReached: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!(await isReached())) {
      if (performance.now() > deadline) throw new Error('not reached in time');
    }
  }
});
