/** One key asks for many large pages at once: it waits for itself, and nobody else notices. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { call } from '../support/http-call.ts';
import { createApplication, startTestPlanes, type TestPlanes } from './planes.ts';

const TOKENS = 12;
const PAGE = 'GET /tokens?size=20&metadata.large=yes';
const PAGES_AT_ONCE = 16;
const DATA = 'x'.repeat(1_000_000);

describe('large pages', function () {
  this.timeout(90_000);
  let planes: TestPlanes;
  let url: string;
  let key: string;

  before(async () => {
    planes = await startTestPlanes({ SANDBOX_HOSTS: '0' });
    [url = ''] = planes.urls;
    ({ key } = await createApplication(url, planes.tenant));
    for (let made = 0; made < TOKENS; made += 1) {
      const json = { type: 'token', data: DATA, metadata: { large: 'yes' } };
      expect((await call(url, 'POST /tokens', { key, json })).status).to.equal(201);
    }
  });
  after(() => planes?.stop());

  const page = () => call<{ data: unknown[] }>(url, PAGE, { key });

  it('are served one after another, or told to come back; another tenant is served all the time', async () => {
    const other = await planes.addTenant('Neighbour');
    const neighbour = await createApplication(url, other);
    const json = { type: 'token', data: 'small' };
    const { body } = await call(url, 'POST /tokens', { key: neighbour.key, json });
    let isOver = false;
    const pages = Promise.all(Array.from({ length: PAGES_AT_ONCE }, page)).finally(() => {
      isOver = true;
    });
    const seen = new Set<number>();
    do seen.add((await call(url, `GET /tokens/${body.id}`, { key: neighbour.key })).status);
    while (!isOver);
    expect([...seen]).to.deep.equal([200]);
    const answers = await pages;
    const served = answers.filter(({ status }) => status === 200);
    expect(served.length).to.be.at.least(2);
    for (const answer of served) expect(answer.body.data).to.have.lengthOf(TOKENS);
    for (const { status, headers } of answers) {
      expect(status).to.be.oneOf([200, 429]);
      if (status === 429) expect(headers.get('retry-after')).to.equal('1');
    }
  });

  it('that nobody takes keep the room of their tenant, and give it back with their connections', async () => {
    const sockets = await Promise.all([unread(), unread()]);
    expect((await page()).status).to.equal(429);
    for (const socket of sockets) socket.destroy();
    let status = 429;
    while (status === 429) ({ status } = await page());
    expect(status).to.equal(200);
  });

  /** Has asked for a page, of which it has read the beginning. */
  async function unread(): Promise<Socket> {
    const socket = connect(Number(new URL(url).port), 'localhost');
    socket.write(`${PAGE} HTTP/1.1\r\nHost: localhost\r\nBT-API-KEY: ${key}\r\n\r\n`);
    await once(socket, 'readable');
    return socket;
  }
});
