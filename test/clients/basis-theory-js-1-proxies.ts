/** Proxies, made and called by the client library @basis-theory/basis-theory-js 1.79.3; for its test file. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { type Connected, failureOf } from './basis-theory-js-1.ts';

const NUMBER = '4242424242424242';

/** What a destination got, which it answers. */
interface Echo {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Answers what it got, with the status that the query asks for. */
function startEcho(): Promise<Server> {
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    const { method, url = '', headers } = req;
    const status = Number(new URLSearchParams(url.split('?')[1]).get('status') ?? 200);
    res.writeHead(status, { 'content-type': 'application/json', 'set-cookie': ['a=1', 'b=2'] });
    res.end(JSON.stringify({ method, url, headers, body: `${Buffer.concat(chunks)}` }));
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

/** `connected` is called when tests run. */
export const describeProxies = (connected: () => Connected) =>
  describe('proxies', () => {
    let echo: Server;
    let destinationUrl: string;
    let sallyport: Connected['sallyport'];
    let manager: Connected['manager'];
    let client: Connected['client'];
    let applicationId: string;
    let card: string;

    before(async () => {
      ({ sallyport, manager, client, applicationId } = connected());
      echo = await startEcho();
      destinationUrl = `http://127.0.0.1:${(echo.address() as AddressInfo).port}/base`;
      card = (await client.tokens.create({ type: 'card', data: { number: NUMBER } })).id;
    });
    after(() => {
      echo?.closeAllConnections();
      echo?.close();
    });

    it('manages them', async () => {
      const { proxies } = manager;
      const transforms = {
        requestTransform: { code: 'module.exports = async ({ args }) => args;' },
        responseTransform: { code: 'module.exports = async ({ args: { body } }) => ({ body });' },
      };
      const values = { name: 'P', destinationUrl, requireAuth: false, ...transforms };
      const draft = { ...values, configuration: { aKey: '1', b_key: '2' } };
      const created = await proxies.create({ ...draft, application: { id: applicationId } });
      expect(created).to.deep.include({ ...draft, applicationId, tenantId: sallyport.tenant.id });
      expect(await proxies.retrieve(created.id)).to.deep.equal(created);
      const updated = await proxies.update(created.id, { ...created, name: 'Q' });
      expect(updated).to.deep.include({ ...draft, name: 'Q', key: created.key });
      const configuration = { aKey: null } as unknown as Record<string, string>;
      await proxies.patch(created.id, { name: 'R', configuration, requireAuth: true });
      const patched = await proxies.retrieve(created.id);
      const after = { name: 'R', configuration: { b_key: '2' }, requireAuth: true };
      expect(patched).to.deep.include({ ...after, ...transforms });
      expect((await proxies.list({ id: created.id, name: 'r*' })).data).to.deep.equal([patched]);
      await proxies.delete(created.id);
      expect(await failureOf(proxies.retrieve(created.id))).to.include({ status: 404 });
    });

    describe('called', () => {
      let headers: { 'BT-PROXY-KEY': string; 'X-Request': string };
      before(async () => {
        const { key } = await manager.proxies.create({ name: 'P', destinationUrl });
        headers = { 'BT-PROXY-KEY': key, 'X-Request': 'yes' };
      });

      for (const method of ['get', 'delete'] as const) {
        it(`forwards a ${method} with path and query`, async () => {
          const query = { first: 'a b', Second: '2' };
          const got: Echo = await client.proxy[method]({ path: '/sub', query, headers });
          expect(got).to.include({ method: method.toUpperCase(), body: '' });
          expect(got.url).to.equal('/base/sub?first=a+b&Second=2');
          expect(got.headers).to.include({ 'x-request': 'yes' });
          expect(got.headers).not.to.have.any.keys('bt-api-key', 'bt-proxy-key');
          expect((await client.proxy[method]({ headers })).url).to.equal('/base');
        });
      }

      for (const method of ['post', 'put', 'patch'] as const) {
        it(`puts values into the body of a ${method}, and converts no names`, async () => {
          const body = { cardNumber: `{{ ${card} | json: "$.number" }}`, a_b: [1] };
          const options = { path: '/sub', query: { aB: '1' }, headers, body };
          const got: Echo = await client.proxy[method]({ ...options, correlationId: 'mine' });
          expect(got).to.include({ method: method.toUpperCase(), url: '/base/sub?aB=1' });
          expect(JSON.parse(got.body)).to.deep.equal({ cardNumber: NUMBER, a_b: [1] });
          expect(got.headers).to.include({ 'x-request': 'yes', 'bt-trace-id': 'mine' });
          const bare: Echo = await client.proxy[method]({ headers });
          expect(bare).to.include({ url: '/base', body: '' });
        });
      }

      it('takes the key in the query, and answers with the headers that came', async () => {
        const query = { 'bt-proxy-key': headers['BT-PROXY-KEY'], other: '1' };
        const options = { query, correlationId: 'mine', includeResponseHeaders: true, body: {} };
        const answer = await client.proxy.post(options);
        expect(answer.data).to.include({ url: '/base?other=1' });
        expect(answer.headers).to.deep.include({
          ...{ 'set-cookie': ['a=1', 'b=2'], 'bt-trace-id': 'mine' },
          'bt-proxy-destination-status': '200',
        });
      });

      it("tells the destination's errors as they are, and the proxy's own by themselves", async () => {
        const refused = client.proxy.post({ headers, query: { status: '402' }, body: { a: 1 } });
        const failure = await failureOf(refused);
        expect(failure).to.include({ name: 'BasisTheoryApiError', status: 402 });
        expect(failure.data).to.include({ body: '{"a":1}' });
        const own: [number, object][] = [
          [400, { headers, body: { a: '{{ not-there }}' } }],
          [400, { body: {} }],
          [401, { headers, body: {}, apiKey: 'key_nobody' }],
          [403, { headers, body: {}, apiKey: sallyport.tenant.managementKey }],
          [404, { headers: { 'BT-PROXY-KEY': 'nothing' }, body: {} }],
        ];
        for (const [status, options] of own) {
          const { status: told, data } = await failureOf(client.proxy.post(options));
          expect(told).to.equal(status);
          expect(data.proxy_error).to.include({ status });
        }
      });
    });

    it('runs transforms on the way there and back', async () => {
      const request = `module.exports = async ({ args, bt, configuration }) => {
      const { number, ...others } = args.body;
      const { id } = await bt.tokens.create({ type: 'card_number', data: number });
      return { headers: { ...args.headers, 'X-Key': configuration.aKey }, body: { ...others, id } };
    };`;
      const response = `module.exports = async ({ args }) => ({
      headers: { 'X-Response': 'yes' }, body: { got: args.body },
    });`;
      const { key } = await manager.proxies.create({
        ...{ name: 'Inbound', destinationUrl, configuration: { aKey: 'k1' }, requireAuth: false },
        ...{ requestTransform: { code: request }, responseTransform: { code: response } },
        application: { id: applicationId },
      });
      const headers = { 'BT-PROXY-KEY': key };
      const body = { number: NUMBER, item: 7 };
      const answer = await client.proxy.post({ headers, body, includeResponseHeaders: true });
      expect(answer.headers).to.include({ 'x-response': 'yes' });
      const got: Echo = answer.data.got;
      expect(got.headers).to.include({ 'x-key': 'k1' });
      const { id, item } = JSON.parse(got.body);
      expect(id).to.match(/^[0-9a-f-]{36}$/);
      expect(item).to.equal(7);
      expect(got.body).not.to.contain(NUMBER);
    });
  });
