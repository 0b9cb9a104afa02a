/** A database with fewer connections than are wanted, writers that cross each other, and a late start. */
import { expect } from 'chai';
import pg from 'pg';
import { type Proxies, startProxies } from '../proxy/proxies.ts';
import { call } from '../support/http-call.ts';

const CONNECTIONS_MAX = 4;
const CALLS = 64;
const ROUNDS = 20;
const CROSSING = 4;

describe('a data plane whose database gives less than is wanted', function () {
  this.timeout(60_000);
  let proxies: Proxies;
  let admin: pg.Client;
  before(async () => {
    proxies = await startProxies();
    const { adminConnectionString } = proxies.control.database;
    admin = new pg.Client({ connectionString: adminConnectionString });
    await admin.connect();
  });
  after(async () => {
    await admin?.end();
    await proxies?.stop();
  });

  const write = (id: string) =>
    call(proxies.url, 'POST /tokens', {
      ...{ key: proxies.key, json: { id, type: 'token', data: id } },
    });

  it('answers 503 where it got no connection, serves with those it has, and recovers', async () => {
    const { name } = proxies.control.database;
    await admin.query(`ALTER DATABASE ${name} CONNECTION LIMIT ${CONNECTIONS_MAX}`);
    await admin.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = $1 AND pid <> pg_backend_pid()`,
      [name],
    );
    const lists = (count: number) =>
      Promise.all(
        Array.from({ length: count }, () =>
          call(proxies.url, 'GET /tokens?size=1', { key: proxies.key }),
        ),
      );
    const statuses: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      for (const { status, headers } of await lists(CALLS)) {
        statuses.push(status);
        if (status !== 200) expect([status, headers.get('retry-after')]).to.deep.equal([503, '1']);
      }
    }
    expect(statuses).to.include.members([200, 503]);
    await admin.query(`ALTER DATABASE ${name} CONNECTION LIMIT -1`);
    const after = await lists(CALLS);
    expect(new Set(after.map(({ status }) => status))).to.deep.equal(new Set([200]));
  });

  it('lets one of many win whose writes cross each other, and refuses the others', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const ids = [`crossing-${round}-a`, `crossing-${round}-b`];
      const body = (order: string[]) => order.map((id) => ({ id, type: 'token', data: id }));
      const answers = await Promise.all(
        Array.from({ length: CROSSING }, (_, index) =>
          call(proxies.url, 'POST /tokenize', {
            key: proxies.key,
            json: body(index % 2 === 0 ? ids : ids.toReversed()),
          }),
        ),
      );
      const statuses = answers.map(({ status }) => status).sort();
      expect(statuses).to.deep.equal([200, 409, 409, 409]);
      for (const id of ids) expect((await write(id)).status).to.equal(409);
    }
  });
});
