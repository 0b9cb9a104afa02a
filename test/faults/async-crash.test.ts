/**
 * The job process killed while reactions wait and run: nothing is lost, nothing runs twice, each has one
 * result (design section 10).
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { type CallbackReceiver, startCallbackReceiver } from '../api/reactors/callback-receiver.ts';
import { type HeldDestination, startHeldDestination } from '../api/reactors/held-destination.ts';
import { call, type JsonObject } from '../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

/** In arguments and addresses. */
const CANARY = 'canary_4f1c';

describe('asynchronous reactors when the job process is killed', () => {
  let sallyport: TestSallyport;
  let receiver: CallbackReceiver;
  let destination: HeldDestination;
  let key: string;
  before(async function () {
    this.timeout(60_000);
    sallyport = await startSallyport({
      SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8,::1/128',
      SANDBOX_HOSTS: '1',
    });
    receiver = await startCallbackReceiver();
    destination = await startHeldDestination();
    const json = { name: 'Caller', type: 'private', permissions: ['token:use', 'token:create'] };
    key = String((await manage('POST /applications', json)).key);
  });
  after(async () => {
    await receiver?.close();
    await destination?.stop();
    await sallyport?.stop();
  });

  const manage = async (line: string, json: JsonObject): Promise<JsonObject> => {
    const { managementKey } = sallyport.tenant;
    const answer = await call(sallyport.baseUrl, line, { key: managementKey, json });
    if (answer.status !== 201) throw new Error(`${line}: ${answer.text}`);
    return answer.body;
  };
  const script = async (body: string): Promise<string> => {
    const code = `module.exports = async (req) => { ${body} }`;
    return String((await manage('POST /reactors', { name: 'R', code })).id);
  };
  const react = async (id: string, args: unknown): Promise<void> => {
    const json = { args, callback_url: `${receiver.url}&key=${CANARY}`, timeout_ms: 60_000 };
    const answer = await call(sallyport.baseUrl, `POST /reactors/${id}/react`, { key, json });
    expect(answer.status, answer.text).to.equal(202);
  };
  const tokenIds = async (): Promise<string[]> => {
    const { connectionString } = sallyport.database;
    const client = new pg.Client({ connectionString });
    await client.connect();
    const { rows } = await client.query('SELECT id FROM tokens').finally(() => client.end());
    return rows.map(({ id }) => id);
  };
  const kill = async (): Promise<void> => {
    while (!sallyport.planes.jobs.isAlive()) await delay(20);
    process.kill(sallyport.planes.jobs.pid() as number, 'SIGKILL');
  };

  const linesOf = (message: string): JsonObject[] =>
    sallyport
      .output()
      .split('\n')
      .filter((line) => line.includes(`"msg":"${message}"`))
      .map((line) => JSON.parse(line) as JsonObject);

  it('end those that ran as interrupted and run all others, within 20 s', async function () {
    this.timeout(60_000);
    const hanging = await script(
      `await fetch('${destination.url}/began'); await new Promise((r) => setTimeout(r, 50000)); return { raw: 1 }`,
    );
    const echo = await script('return { raw: req.args }');
    await react(hanging, null);
    while (destination.requests === 0) await delay(20);
    const killedAt = performance.now();
    await kill();
    // Accepted while nobody runs jobs.
    for (let index = 0; index < 5; index += 1) await react(echo, `${CANARY} ${index}`);
    const callbacks = await Promise.all(Array.from({ length: 6 }, (_, n) => receiver.callback(n)));
    expect(performance.now() - killedAt).to.be.lessThan(20_000);
    const interrupted = callbacks.filter(({ body }) => body.status === 500);
    expect(interrupted.map(({ body }) => body.errors)).to.deep.equal([{ error: ['interrupted'] }]);
    const values = callbacks.flatMap(({ body }) => (body.status === 500 ? [] : [body.raw]));
    expect(values.sort()).to.deep.equal([0, 1, 2, 3, 4].map((index) => `${CANARY} ${index}`));
    // Neither arguments nor results nor addresses are written down, at any level.
    expect(sallyport.output()).not.to.contain(CANARY);
    const told = linesOf('an asynchronous reaction was interrupted; it is not run again');
    expect(told.map(({ request_id }) => request_id)).to.deep.equal(
      interrupted.map(({ headers }) => headers['webhook-id']),
    );
    expect(told[0]).to.include({ process: 'jobs', level: 'warn', tenant_id: sallyport.tenant.id });
    const metrics = await sallyport.planes.metrics();
    expect(metrics).to.match(/^sallyport_reactions_total\{outcome="interrupted"\} 1$/m);
    await delay(500);
    expect([receiver.received.length, destination.requests]).to.deep.equal([6, 1]);
  });

  it('give each of many one result, and tokens to those that ended well, and to no others', async function () {
    this.timeout(120_000);
    const making = await script('return { raw: req.args, tokenize: "made" }');
    const first = receiver.received.length;
    const count = 150;
    let answered = 0;
    const calling = Promise.all(
      Array.from({ length: 5 }, async (_, caller) => {
        for (let index = caller; index < count; index += 5) {
          await react(making, index);
          answered += 1;
        }
      }),
    );
    for (const share of [0.2, 0.5, 0.8]) {
      while (answered < count * share) await delay(5);
      await kill();
    }
    await calling;
    const ofRun = () => receiver.received.slice(first);
    const ids = () => new Set(ofRun().map(({ headers }) => headers['webhook-id']));
    while (ids().size < count) await delay(100);
    const results = new Map<unknown, string>();
    for (const { headers, text } of ofRun()) {
      const id = headers['webhook-id'];
      // A delivery whose acknowledgement was lost comes again, as it was.
      expect(results.get(id) ?? text).to.equal(text);
      results.set(id, text);
    }
    const ended = [...results.values()].map((text) => JSON.parse(text) as JsonObject);
    const good = ended.filter(({ status }) => status === undefined);
    expect(new Set(good.map(({ raw }) => raw)).size).to.equal(good.length);
    for (const { status, errors } of ended) {
      if (status !== undefined) expect(errors).to.deep.equal({ error: ['interrupted'] });
    }
    const made = await tokenIds();
    expect(new Set(made)).to.deep.equal(new Set(good.map(({ tokens }) => tokens)));
  });

  it('tell of each callback that nobody took, by its ids', async () => {
    receiver.answer = (res) => res.writeHead(410).end();
    const first = receiver.received.length;
    const echo = await script('return { raw: req.args }');
    const count = 3;
    for (let index = 0; index < count; index += 1) await react(echo, index);
    const told = () => linesOf('a callback was not delivered');
    while (told().length < count) await delay(20);
    const sent = receiver.received.slice(first).map(({ headers }) => headers);
    expect(told().map(({ request_id }) => request_id)).to.have.members(
      sent.map((headers) => headers['webhook-id']),
    );
    for (const { outcome, trace_id } of told()) {
      expect(outcome).to.equal('refused');
      expect(sent.map((headers) => headers['bt-trace-id'])).to.include(trace_id);
    }
  });
});
