/** Counters against what callers were told: nothing that is counted is counted twice or left out. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { createApplication } from '../../security/planes.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../../support/sallyport.ts';

const AT_ONCE = 12;

describe('counters of a whole Sallyport', () => {
  let sallyport: TestSallyport;
  let key: string;
  before(async function () {
    this.timeout(30_000);
    sallyport = await startSallyport({ SANDBOX_HOSTS: '0', LOG_LEVEL: 'warn' });
    ({ key } = await createApplication(sallyport.baseUrl, sallyport.tenant));
  });
  after(() => sallyport?.stop());

  async function counted(name: string, outcome: string): Promise<number> {
    const metrics = await sallyport.planes.metrics();
    const line = new RegExp(`^${name}\\{outcome="${outcome}"\\} (\\d+)$`, 'm');
    return Number(line.exec(metrics)?.[1] ?? 0);
  }
  const send = (line: string, rest: { key?: string; json?: unknown; idempotent?: string } = {}) => {
    const headers = rest.idempotent === undefined ? {} : { 'bt-idempotency-key': rest.idempotent };
    return call<JsonObject>(sallyport.baseUrl, line, { key, ...rest, headers });
  };

  it('tell how many requests had no effect since their key was in use, on both planes', async () => {
    const { managementKey } = sallyport.tenant;
    const proxy = { name: 'P', destination_url: 'https://example.com/' };
    const answers: Answer<JsonObject>[] = [];
    for (const [line, rest] of [
      ['POST /tokens', { json: { type: 'token', data: 'a' } }],
      ['POST /proxies', { json: proxy, key: managementKey }],
    ] as const) {
      const twins = Array.from({ length: AT_ONCE }, () => send(line, { ...rest, idempotent: 'k' }));
      answers.push(...(await Promise.all(twins)));
      answers.push(await send(line, { ...rest, idempotent: 'k' }));
      // A key of its own, and none.
      await send(line, { ...rest, idempotent: 'other' });
      await send(line, rest);
    }
    const told = (status: number) => answers.filter((answer) => answer.status === status).length;
    expect(told(201) + told(409)).to.equal(answers.length);
    // All that were answered but the first of each.
    const name = 'sallyport_idempotent_requests_total';
    expect(await counted(name, 'replayed')).to.equal(told(201) - 2);
    expect(await counted(name, 'in_progress')).to.equal(told(409));
  });

  it('tell how transactions have ended', async () => {
    const open = async (): Promise<string> => String((await send('POST /transactions')).body.id);
    const ids = await Promise.all([1, 2, 3, 4, 5].map(open));
    const end = async (index: number, how: string): Promise<number> =>
      (await send(`POST /transactions/${ids[index]}/${how}`)).status;
    expect(await end(0, 'commit')).to.equal(200);
    expect(await end(1, 'commit')).to.equal(200);
    expect(await end(2, 'rollback')).to.equal(200);
    expect(await end(2, 'commit')).to.equal(409);
    const client = new pg.Client({ connectionString: sallyport.database.connectionString });
    await client.connect();
    const due = 'UPDATE transactions SET expires_at = clock_now() WHERE id = $1';
    await client.query(due, [ids[3]]).finally(() => client.end());
    const name = 'sallyport_transactions_total';
    while ((await counted(name, 'expired')) === 0) await delay(50);
    const outcomes = ['committed', 'rolled_back', 'expired'];
    const counts = await Promise.all(outcomes.map((outcome) => counted(name, outcome)));
    expect(counts).to.deep.equal([2, 1, 1]);
  });
});
