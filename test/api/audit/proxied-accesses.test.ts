import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { type Origin, startOrigin } from '../../proxy/origin.ts';
import { type Proxies, startProxies } from '../../proxy/proxies.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { type TrailRow, trailOf } from './trail.ts';

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';

describe('the audit trail of tokens that go through proxies', () => {
  let proxies: Proxies;
  let origin: Origin;
  before(async () => {
    proxies = await startProxies({ SALLYPORT_AUDIT: 'strict', SANDBOX_HOSTS: '1' });
    origin = await startOrigin((socket) => socket.write(ANSWER));
  });
  after(async () => {
    await origin.close();
    await proxies.stop();
  });

  async function send(proxyKey: string, key: string | undefined, json: unknown) {
    const trace = randomUUID();
    const headers = { 'bt-proxy-key': proxyKey, 'bt-trace-id': trace };
    const answer = await call(proxies.url, 'POST /proxy', { key, headers, json });
    const { pool, tenant } = proxies.control;
    return { answer, rows: await trailOf(pool, tenant.id, trace) };
  }
  const told = (rows: TrailRow[]) =>
    rows.map(({ operation, entity_id, via_type, via_id, denied }) => ({
      ...{ operation, entity_id, via_type, via_id, denied },
    }));

  it('tells what was used, by whom, through which proxy', async () => {
    const proxy = await proxies.proxy({ destination_url: origin.url });
    const { id, key } = await proxies.application({ permissions: ['token:use'] });
    const tokens = [await proxies.token('one'), await proxies.token('two')];
    const body = { a: `{{ ${tokens[0]} }}`, b: `x {{ ${tokens[1]} }} {{ ${tokens[0]} }}` };
    const { answer, rows } = await send(proxy.key, key, body);
    expect(answer.status, answer.text).to.equal(200);
    const via = { via_type: 'proxy', via_id: proxy.id, denied: false };
    expect(told(rows)).to.have.deep.members(
      tokens.map((entity_id) => ({ operation: 'use', entity_id, ...via })),
    );
    expect(rows.map(({ actor_id }) => actor_id)).to.deep.equal([id, id]);
    const { baseUrl, tenant } = proxies.control;
    const logs = await call<{ data: JsonObject[] }>(baseUrl, `GET /logs?entity_id=${tokens[0]}`, {
      key: tenant.managementKey,
    });
    expect(logs.body.data[0]).to.include({ via_type: 'proxy', via_id: proxy.id });
  });

  it('tells nothing of a request that brings out no token', async () => {
    const proxy = await proxies.proxy({ destination_url: origin.url });
    const { answer, rows } = await send(proxy.key, proxies.key, { a: 1 });
    expect([answer.status, rows]).to.deep.equal([200, []]);
  });

  it('tells who was denied what', async () => {
    const proxy = await proxies.proxy({ destination_url: origin.url });
    const id = await proxies.token('one');
    const none = await proxies.application({ permissions: ['token:read'] });
    const poor = await proxies.application({
      rules: [{ priority: 1, container: '/a/', transform: 'reveal', permissions: ['token:use'] }],
    });
    const via = { via_type: 'proxy', via_id: proxy.id, denied: true };
    const refused = [
      await send(proxy.key, poor.key, { a: `{{ ${id} }}` }),
      await send(proxy.key, none.key, { a: 1 }),
    ];
    expect(refused.map(({ answer }) => answer.status)).to.deep.equal([403, 403]);
    expect(refused.flatMap(({ rows }) => told(rows))).to.deep.equal([
      { operation: 'use', entity_id: id, ...via },
      { operation: 'use', entity_id: null, ...via },
    ]);
    const anonymous = await proxies.proxy({ destination_url: origin.url, require_auth: false });
    const nobody = await send(anonymous.key, undefined, { a: `{{ ${id} }}` });
    expect([nobody.answer.status, nobody.rows]).to.deep.equal([403, []]);
  });

  it('tells what a transform did with the rights of its application', async () => {
    const own = await proxies.application({ permissions: ['token:create'] });
    const code = `module.exports = async ({ args, bt }) => {
      const token = await bt.tokens.create({ type: 'token', data: args.body.value });
      return { headers: args.headers, body: { id: token.id } }; };`;
    const draft = { destination_url: origin.url, require_auth: false, application: { id: own.id } };
    const proxy = await proxies.proxy({ ...draft, request_transform: { code } });
    const { answer, rows } = await send(proxy.key, undefined, { value: randomUUID() });
    expect(answer.status, answer.text).to.equal(200);
    const received = JSON.parse(String(origin.received.at(-1)?.body)) as { id: string };
    expect(told(rows)).to.deep.equal([
      {
        ...{ operation: 'create', entity_id: received.id, denied: false },
        ...{ via_type: 'proxy', via_id: proxy.id },
      },
    ]);
    expect(rows[0]?.actor_id).to.equal(own.id);
  });
});
