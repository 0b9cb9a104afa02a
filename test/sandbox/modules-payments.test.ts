/** npm modules that call out, inside scripts, against destinations of our own behind the real egress. */
import { once } from 'node:events';
import type { IncomingMessage, RequestListener } from 'node:http';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { createScriptFetch, type ScriptFetch } from '../../shared/sandbox/script-fetch.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { type Destination, startEgress, startHttps } from '../unit/egress/destinations.ts';
import { issueCertificate } from '../unit/egress/issue-certificate.ts';

interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

const authority = issueCertificate({ subject: 'Test authority', isCa: true });
const identity = issueCertificate({ subject: 'psp', issuer: authority, names: ['psp.example'] });

describe('a script that requires', () => {
  let sandbox: Sandbox;
  let scriptFetch: ScriptFetch;
  let destination: Destination;
  let received: Received[] = [];
  let answer: (request: Received) => readonly [number, string, string] = () => [200, '', ''];

  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(request, 'end');
    const { method, url, headers } = request;
    const seen = { method, url, headers, body: Buffer.concat(chunks).toString() };
    received.push(seen);
    if (url === '/hang') return;
    const [status, type, text] = answer(seen);
    const isPacked = /gzip/.test(String(headers['accept-encoding']));
    const body = isPacked ? gzipSync(text) : text;
    response.writeHead(status, {
      'content-type': type,
      ...(isPacked && { 'content-encoding': 'gzip' }),
      ...(status === 302 && { location: '/elsewhere' }),
    });
    response.end(body);
  };

  before(async () => {
    sandbox = await startSandbox();
    destination = await startHttps({ cert: identity.cert, key: identity.key }, listener);
    const egress = startEgress('127.0.0.0/8', [['127.0.0.1']], { extraCa: [authority.cert] });
    scriptFetch = createScriptFetch({ egress });
  });
  beforeEach(() => {
    received = [];
  });
  after(async () => {
    await sandbox.supervisor.close();
    await scriptFetch.close();
    await destination.close();
  });

  const inside = (body: string): Promise<unknown> =>
    sandbox.value(`module.exports = async (req) => { const { port } = req.args; ${body} };`, {
      args: JSON.stringify({ port: destination.port }),
      services: { fetch: scriptFetch.fetchFor('tenant') },
    });
  const json = (status: number, value: unknown) =>
    [status, 'application/json', JSON.stringify(value)] as const;

  it('axios posts JSON and reads the answer', async () => {
    answer = ({ body }) => json(201, { got: JSON.parse(body) });
    const body = `const axios = require('axios');
      const { data, status, headers } = await axios.post('https://psp.example:' + port + '/pay', { a: 1 }, { params: { b: 'c d' }, headers: { 'X-Key': 'k' }, auth: { username: 'u', password: 'p' } });
      return [data, status, headers['content-type']];`;
    expect(await inside(body)).to.deep.equal([{ got: { a: 1 } }, 201, 'application/json']);
    expect(received[0]).to.deep.include({ method: 'POST', url: '/pay?b=c+d', body: '{"a":1}' });
    expect(received[0]?.headers).to.include({
      ...{ 'x-key': 'k', 'content-type': 'application/json', authorization: 'Basic dTpw' },
    });
  });

  it('axios rejects with the response, times out, and has instances', async () => {
    answer = ({ url }) => json(url === '/no' ? 402 : 200, { ok: url });
    const body = `const axios = require('axios'); const api = axios.create({ baseURL: 'https://psp.example:' + port, headers: { 'X-I': '1' } });
      api.interceptors.request.use((config) => { config.headers['X-J'] = '2'; return config; });
      const error = await api.get('/no').catch((error) => error);
      const form = await api.post('/form', new URLSearchParams({ a: 'b c' }));
      const gone = await axios.get('https://nobody.example:1/').catch((error) => [axios.isAxiosError(error), error.response]);
      const late = await api.get('/hang', { timeout: 20 }).catch((error) => error.code);
      return [axios.isAxiosError(error), error.response.status, error.response.data, form.data, gone, late];`;
    expect(await inside(body)).to.deep.equal([
      ...[true, 402, { ok: '/no' }, { ok: '/form' }, [true, null], 'ECONNABORTED'],
    ]);
    // The one that was given up may have arrived or not.
    expect(received.slice(0, 2).map(({ body: sent }) => sent)).to.deep.equal(['', 'a=b+c']);
    expect(received[1]?.headers).to.include({ 'x-i': '1', 'x-j': '2' });
    expect(received[1]?.headers['content-type']).to.match(/^application\/x-www-form-urlencoded/);
  });

  it('axios gives bytes as a Buffer, and follows no redirect when told so', async () => {
    answer = ({ url }) => (url === '/302' ? [302, 'text/plain', ''] : [200, 'a/b', 'bytes']);
    const body = `const axios = require('axios'); const at = 'https://psp.example:' + port;
      const { data } = await axios.get(at + '/bytes', { responseType: 'arraybuffer' });
      const moved = await axios.get(at + '/302', { maxRedirects: 0, validateStatus: () => true });
      return [data.toString('base64'), moved.status];`;
    expect(await inside(body)).to.deep.equal(['Ynl0ZXM=', 302]);
    expect(received.map(({ url }) => url)).to.deep.equal(['/bytes', '/302']);
  });

  it('axios finds no way out but fetch, and no proxy of the environment', async () => {
    answer = () => json(200, {});
    const body = `const axios = require('axios'); const https = require('https'); const at = 'https://psp.example:' + port;
      process.env.HTTPS_PROXY = 'http://evil.example'; const tried = [];
      for (const config of [{ adapter: 'http' }, { adapter: 'xhr' }, { httpsAgent: new https.Agent({ cert: 'c', key: 'k' }) }, { proxy: { host: 'evil.example', port: 1 } }]) {
        tried.push(await axios.get(at, config).then((response) => response.status, (error) => error.code ?? error.name)); }
      return [tried, typeof XMLHttpRequest];`;
    expect(await inside(body)).to.deep.equal([
      ['ERR_NOT_SUPPORT', 'ERR_NOT_SUPPORT', 'ERR_NOT_SUPPORT', 200],
      'undefined',
    ]);
  });

  it('axios cannot reach what the egress guard refuses', async () => {
    const body = `const axios = require('axios'); const reached = [];
      for (const url of ['http://psp.example/', 'https://169.254.169.254/', 'file:///etc/passwd']) {
        reached.push(await axios.get(url).then(() => url, () => 'refused')); }
      const base = axios.create({ baseURL: 'https://psp.example:' + port });
      reached.push(await base.get('//169.254.169.254/').then(() => 'reached', () => 'refused'));
      return reached;`;
    expect(await inside(body)).to.deep.equal(Array(4).fill('refused'));
  });

  it('stripe makes a charge, and its errors are what they should be', async () => {
    answer = ({ url }) =>
      url === '/v1/charges'
        ? json(200, { id: 'ch_1', object: 'charge' })
        : json(402, { error: { type: 'card_error', code: 'card_declined', message: 'No.' } });
    const body = `const Stripe = require('stripe'); const stripe = new Stripe('sk_test_x', { host: 'psp.example', port, protocol: 'https' });
      const charge = await stripe.charges.create({ amount: 5, source: { number: '4242' } }, { idempotencyKey: 'i' });
      const error = await require('stripe')('sk_test_x', { host: 'psp.example', port }).tokens.create({ card: { number: '1' } }).catch((error) => error);
      return [charge.id, charge.object, error.type, error.code, error.statusCode];`;
    expect(await inside(body)).to.deep.equal([
      ...['ch_1', 'charge', 'StripeCardError', 'card_declined', 402],
    ]);
    expect(received[0]).to.include({ url: '/v1/charges', body: 'amount=5&source[number]=4242' });
    expect(received[0]?.headers).to.include({
      ...{ authorization: 'Bearer sk_test_x', 'idempotency-key': 'i' },
    });
    // It would run `uname` where there are processes.
    const client = JSON.parse(String(received[0]?.headers['x-stripe-client-user-agent']));
    expect(client.uname).to.equal('UNKNOWN');
  });

  it('stripe takes a client of its own, and checks webhooks', async () => {
    answer = () => json(200, { id: 'cus_1' });
    const body = `const Stripe = require('stripe'); const httpClient = Stripe.createFetchHttpClient();
      const stripe = new Stripe('sk_test_x', { host: 'psp.example', port, httpClient }); const payload = '{"id":"evt_1"}';
      const header = stripe.webhooks.generateTestHeaderString({ payload, secret: 'whsec_x' });
      let wrong; try { stripe.webhooks.constructEvent(payload + ' ', header, 'whsec_x'); } catch (error) { wrong = error.type; }
      return [(await stripe.customers.retrieve('cus_1')).id, stripe.webhooks.constructEvent(payload, header, 'whsec_x').id, wrong];`;
    expect(await inside(body)).to.deep.equal([
      ...['cus_1', 'evt_1', 'StripeSignatureVerificationError'],
    ]);
  });

  it('braintree makes a sale', async () => {
    const xml = '<transaction><id>t1</id><status>authorized</status></transaction>';
    answer = () => [201, 'application/xml', xml];
    const body = `const braintree = require('braintree');
      const environment = new braintree.Environment('psp.example', String(port), 'https://psp.example', true, 'psp.example', String(port));
      const gateway = new braintree.BraintreeGateway({ environment, merchantId: 'm', publicKey: 'u', privateKey: 'p' });
      const { success, transaction } = await gateway.transaction.sale({ amount: '10.00', creditCard: { number: '4111111111111111' } });
      return [success, transaction.id, transaction.status];`;
    expect(await inside(body)).to.deep.equal([true, 't1', 'authorized']);
    expect(received[0]?.url).to.equal('/merchants/m/transactions');
    expect(JSON.parse(received[0]?.body ?? '')).to.deep.equal({
      transaction: {
        ...{ amount: '10.00', type: 'sale', credit_card: { number: '4111111111111111' } },
      },
    });
    expect(received[0]?.headers['accept-encoding']).to.equal(undefined);
  });

  it('@adyen/api-library makes a payment', async () => {
    answer = () => json(200, { pspReference: 'r1', resultCode: 'Authorised' });
    const body = `const { Client, Config, CheckoutAPI } = require('@adyen/api-library');
      const config = new Config(); config.apiKey = 'key'; config.merchantAccount = 'm';
      const client = new Client({ config }); client.setEnvironment('TEST'); client.config.checkoutEndpoint = 'https://psp.example:' + port + '/checkout';
      const { pspReference, resultCode } = await new CheckoutAPI(client).payments({ amount: { currency: 'EUR', value: 5 }, reference: 'x', merchantAccount: 'm', paymentMethod: { type: 'scheme', number: '4111' } });
      return [pspReference, resultCode];`;
    expect(await inside(body)).to.deep.equal(['r1', 'Authorised']);
    expect(received[0]?.url).to.match(/^\/checkout\/v\d+\/payments$/);
    expect(received[0]?.headers['x-api-key']).to.equal('key');
    expect(JSON.parse(received[0]?.body ?? '').paymentMethod.number).to.equal('4111');
  });
});
