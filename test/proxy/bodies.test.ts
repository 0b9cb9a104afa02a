/**
 * Expressions in the bodies of proxied requests: what the destination gets, and when it gets nothing
 * (spec: Proxies; attacks C-05).
 */
import { expect } from 'chai';
import { randomCardNumber } from '../support/card-numbers.ts';
import { type Answer, call, type JsonObject } from '../support/http-call.ts';
import { type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';

const FORM = 'application/x-www-form-urlencoded';
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';

interface Sent {
  readonly key?: string | undefined;
  readonly proxyKey?: string;
  readonly type?: string | undefined;
}

describe('the body of a proxied request', () => {
  let proxies: Proxies;
  let origin: Origin;
  let proxyKey: string;
  before(async () => {
    proxies = await startProxies();
    origin = await startOrigin(ANSWER);
    proxyKey = (await proxies.proxy({ destination_url: origin.url })).key;
  });
  after(async () => {
    await origin?.close();
    await proxies?.stop();
  });
  beforeEach(() => origin.received.splice(0));

  async function post(body: string | Uint8Array<ArrayBuffer>, sent: Sent = {}) {
    const { type = 'application/json' } = sent;
    const key = 'key' in sent ? sent.key : proxies.key;
    return call<JsonObject>(proxies.url, 'POST /proxy/pay', {
      ...{ key, body },
      headers: { 'BT-PROXY-KEY': sent.proxyKey ?? proxyKey, 'content-type': type },
    });
  }

  /** The bytes that reached the destination; the request must have succeeded. */
  async function forwarded(body: string | Uint8Array<ArrayBuffer>, sent?: Sent): Promise<Buffer> {
    const answer = await post(body, sent);
    expect(answer.status, answer.text).to.equal(200);
    expect(origin.received).to.have.length(1);
    return Buffer.from(origin.received[0]?.body ?? '', 'latin1');
  }

  const text = async (body: string, sent?: Sent): Promise<string> =>
    (await forwarded(body, sent)).toString();

  /** The `proxy_error` of a request that never reached the destination. */
  async function refused(body: string, sent?: Sent): Promise<JsonObject> {
    const answer: Answer<JsonObject> = await post(body, sent);
    expect(answer.headers.get('bt-proxy-destination-status')).to.equal(null);
    expect(origin.received).to.have.length(0);
    expect(Object.keys(answer.body)).to.deep.equal(['proxy_error']);
    const error = answer.body.proxy_error as JsonObject;
    expect(error.status).to.equal(answer.status);
    return error;
  }

  it('has token data put in with its type, and no other byte changed', async () => {
    const number = randomCardNumber();
    const pan = await proxies.token(number);
    const card = await proxies.token({ number, month: 7, "o'": '"\\ü' });
    const body = `{ "a":"{{ ${pan} }}","m" : "{{${card} | json: '$.month'}}",\n"c":"{{ ${card} }}", "n":1.50e2, "n":"x {{${pan} | last4}} }"}`;
    const expected = `{ "a":"${number}","m" : 7,\n"c":{"number":"${number}","month":7,"o'":"\\"\\\\ü"}, "n":1.50e2, "n":"x ${number.slice(-4)} }"}`;
    expect(await text(body)).to.equal(expected);
    expect(origin.received[0]?.headers.join('\n').toLowerCase()).to.contain(
      `content-length: ${Buffer.byteLength(expected)}`,
    );
  });

  it('has token data put into the fields of a form, encoded for them', async () => {
    const pan = await proxies.token('a&b=c d');
    expect(await text(`card.number=%7B%7B+${pan}+%7D%7D&x=%zz`, { type: FORM })).to.equal(
      'card.number=a%26b%3Dc+d&x=%zz',
    );
  });

  it('is passed on byte for byte without expressions, JSON or not', async () => {
    for (const body of ['{"a":{"b":{}}}', '{"a": nonsense', '{"a":"}} {% x %}"}', '{"a":1e999}']) {
      origin.received.splice(0);
      expect(await text(body)).to.equal(body);
    }
    origin.received.splice(0);
    const bytes = Uint8Array.from([0x7b, 0xff, 0x00, 0x7d]);
    expect(await forwarded(bytes)).to.deep.equal(Buffer.from(bytes));
  });

  it('is left alone under any other content type, in names of members and outside of bodies', async () => {
    const pan = await proxies.token('secret-value');
    for (const type of [
      'text/plain',
      'application/xml',
      'multipart/form-data; boundary=x',
      'x/y',
    ]) {
      origin.received.splice(0);
      expect(await text(`<a>{{ ${pan} }}</a>`, { type })).to.equal(`<a>{{ ${pan} }}</a>`);
    }
    origin.received.splice(0);
    const answer = await call(proxies.url, `GET /proxy/%7B%7B${pan}%7D%7D?q=%7B%7B${pan}%7D%7D`, {
      key: proxies.key,
      headers: { 'BT-PROXY-KEY': proxyKey, 'x-token': `{{ ${pan} }}` },
    });
    expect(answer.status).to.equal(200);
    expect(JSON.stringify(origin.received)).to.not.contain('secret-value');
    origin.received.splice(0);
    expect(await text(`{"{{ ${pan} }}":1}`)).to.equal(`{"{{ ${pan} }}":1}`);
  });

  it('is read once: an expression inside of token data stays text', async () => {
    const pan = await proxies.token('secret-value');
    const trap = await proxies.token(`{{ ${pan} }}`);
    expect(await text(`["{{ ${trap} }}"]`)).to.equal(`["{{ ${pan} }}"]`);
  });

  it('may use 100 tokens, any number of times, and no more', async () => {
    const ids = await Promise.all(
      Array.from({ length: 101 }, (_, index) => proxies.token(`v${index}`)),
    );
    const body = (list: string[]) => JSON.stringify(list.map((id) => `{{ ${id} }}`));
    const some = ids.slice(0, 100);
    expect(JSON.parse(await text(body([...some, ...some])))).to.have.length(200);
    origin.received.splice(0);
    const error = await refused(body(ids));
    expect(error).to.deep.include({ status: 400 });
    expect(JSON.stringify(error.errors)).to.contain('At most 100 tokens');
  });

  it('with unknown tokens is refused, naming them and nothing else', async () => {
    const pan = await proxies.token('secret-value');
    const error = await refused(`["{{ ${pan} }}","{{ tok_that_does_not_exist }}"]`);
    expect(error).to.deep.equal({
      errors: {},
      title: 'Invalid proxy request',
      status: 400,
      detail: 'Failed to detokenize some tokens: tok_that_does_not_exist',
    });
  });

  const malformed = ['"{{', '"{{ }}"', '"{{{{abc}}}}"', '"{{ abc }} {{ b"', '{"a":{{abc}}}'];
  for (const body of [...malformed, '"{{ abc | nofilter }}"', '"{{ ab }}"']) {
    it(`is refused when it is malformed: ${body}`, async () => {
      const error = await refused(body);
      expect(error.status).to.equal(400);
    });
  }

  it('does not bring out tokens that the caller may not use', async () => {
    const pan = await proxies.token('secret-value');
    const use = (transform: string) => ({
      rules: [{ priority: 1, container: '/', transform, permissions: ['token:use'] }],
    });
    const elsewhere = {
      rules: [{ priority: 1, container: '/pci/', transform: 'reveal', permissions: ['token:use'] }],
    };
    for (const grants of [use('redact'), elsewhere]) {
      const { key } = await proxies.application(grants);
      const error = await refused(`["{{ ${pan} }}"]`, { key });
      expect(error.status).to.equal(403);
      expect(error.detail).to.contain(pan);
      expect(JSON.stringify(error)).to.not.contain('secret-value');
    }
  });

  it('gets the masked value where the caller may see no more', async () => {
    const number = randomCardNumber();
    const json = { type: 'card_number', data: number };
    const { id } = await call(proxies.url, 'POST /tokens', { key: proxies.key, json }).then(
      ({ body }) => body,
    );
    const { key } = await proxies.application({
      rules: [{ priority: 1, container: '/', transform: 'mask', permissions: ['token:use'] }],
    });
    const masked = JSON.parse(await text(`["{{ ${id} }}"]`, { key })) as string[];
    expect(masked[0]).to.match(/^X+\d{4}$/);
  });

  it('of an anonymous caller brings out no token', async () => {
    const pan = await proxies.token('secret-value');
    const open = await proxies.proxy({ destination_url: origin.url, require_auth: false });
    const anonymous = { key: undefined, proxyKey: open.key };
    expect(await text('{"a":"}}"}', anonymous)).to.equal('{"a":"}}"}');
    origin.received.splice(0);
    const error = await refused(`["{{ ${pan} }}"]`, anonymous);
    expect(error.status).to.equal(403);
    expect(await text(`["{{ ${pan} }}"]`, { proxyKey: open.key })).to.contain('secret-value');
  });

  it('of another tenant brings out nothing of this one', async () => {
    const pan = await proxies.token('secret-value');
    const otherTenant = await proxies.control.addTenant('Other');
    const theirs = await proxies.proxy({ destination_url: origin.url }, otherTenant);
    const { key } = await proxies.application({ permissions: ['token:use'] }, otherTenant);
    const error = await refused(`["{{ ${pan} }}"]`, { key, proxyKey: theirs.key });
    expect(error.detail).to.equal(`Failed to detokenize some tokens: ${pan}`);
  });

  it('of 5 MiB is looked through in time, and is not passed on above', async () => {
    const body = `{"a":"${'{'.repeat(5 * 1024 * 1024 - 100)}"}`;
    const error = await refused(body);
    expect(error.status).to.equal(400);
    const plain = `{"a":"${'}'.repeat(5 * 1024 * 1024 - 100)}"}`;
    expect((await forwarded(plain)).length).to.equal(plain.length);
    origin.received.splice(0);
    expect((await refused(`{"a":"${'}'.repeat(5 * 1024 * 1024)}"}`)).status).to.equal(413);
  });
});
