import { expect } from 'chai';
import { generateApiKey } from '../../../shared/api-keys.ts';
import { call } from '../../support/http-call.ts';
import { exchange } from '../../support/raw-http.ts';
import { expectProblem, type TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('token operations as HTTP', () => {
  let vault: Vault;
  let tokens: TokenClient;
  let id: string;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
    ({ id } = await tokens.created({ type: 'token', data: 'x' }));
  });
  after(() => vault.stop());

  /** Head lines as they are; the status of the answer. */
  async function raw(...lines: string[]) {
    const port = Number(new URL(vault.url).port);
    const { answers } = await exchange(port, [...lines, '', ''].join('\r\n'), 1);
    return answers[0];
  }
  const operations = (): [string, unknown][] => [
    ['POST /tokens', { type: 'token', data: 1 }],
    ['GET /tokens', undefined],
    [`GET /tokens/${id}`, undefined],
    [`PATCH /tokens/${id}`, {}],
    [`DELETE /tokens/${id}`, undefined],
  ];

  describe('without a valid key', () => {
    const KEYS: [string, string | undefined][] = [
      ['no key', undefined],
      ['an empty key', ''],
      ['spaces', '   '],
      ['a word', 'key'],
      ['SQL', "' OR 1=1 --"],
      ['a long text', 'k'.repeat(10_000)],
      ['a well-formed key that nobody has', generateApiKey()],
    ];
    for (const [what, key] of KEYS) {
      it(`${what} is 401 in the same words everywhere`, async () => {
        const texts = new Set<string>();
        for (const [line, json] of operations()) {
          const headers = { 'content-type': 'application/merge-patch+json' };
          const rest = line.startsWith('PATCH') ? { headers } : {};
          const answer = await call(vault.url, line, { key, json, ...rest });
          expectProblem(answer, 401);
          texts.add(answer.text);
        }
        const { text } = await call(vault.url, 'GET /tokens', {});
        expect([...texts]).to.deep.equal([text]);
      });
    }
    it('a key with its last character changed is 401', async () => {
      const last = vault.key.endsWith('1') ? '2' : '1';
      const key = vault.key.slice(0, -1) + last;
      expectProblem(await call(vault.url, 'GET /tokens', { key }), 401);
    });
    it('a key in the query, a cookie or Authorization is 401', async () => {
      const { key } = vault;
      for (const headers of [
        { authorization: `Bearer ${key}` },
        { cookie: `BT-API-KEY=${key}` },
        { 'x-api-key': key },
      ]) {
        const answer = await call(vault.url, `GET /tokens?BT-API-KEY=${key}`, { headers });
        expectProblem(answer, 401);
      }
    });
    it('a body is not even judged', async () => {
      const headers = { 'content-type': 'application/json' };
      expectProblem(await call(vault.url, 'POST /tokens', { body: '{', headers }), 401);
      expectProblem(await call(vault.url, 'POST /tokens', { body: 'x'.repeat(100) }), 401);
    });
  });

  describe('methods', () => {
    it('HEAD is GET without the body', async () => {
      for (const path of [`/tokens/${id}`, '/tokens', `/tokens/${id}/`]) {
        const [head, get] = [await tokens.send(`HEAD ${path}`), await tokens.send(`GET ${path}`)];
        expect([head.status, head.text]).to.deep.equal([200, '']);
        for (const name of ['content-type', 'content-length', 'cache-control']) {
          expect(head.headers.get(name), name).to.equal(get.headers.get(name));
        }
      }
      const missing = await tokens.send('HEAD /tokens/does-not-exist');
      expect([missing.status, missing.text]).to.deep.equal([404, '']);
    });
    it('OPTIONS is answered without a key, for any origin', async () => {
      for (const path of ['/tokens', `/tokens/${id}`, '/applications', '/unknown/path']) {
        const { status, headers, text } = await call(vault.url, `OPTIONS ${path}`, {
          headers: {
            origin: 'https://shop.example',
            'access-control-request-method': 'PATCH',
            'access-control-request-headers': 'bt-api-key, content-type, bt-trace-id',
          },
        });
        expect([status, text]).to.deep.equal([204, '']);
        expect(headers.get('access-control-allow-origin')).to.equal('*');
        expect(headers.get('access-control-allow-methods'))
          .to.contain('PATCH')
          .and.contain('DELETE');
        const allowed = headers.get('access-control-allow-headers') ?? '';
        for (const name of ['bt-api-key', 'bt-trace-id', 'bt-idempotency-key', 'content-type']) {
          expect(allowed.split(', ')).to.include(name);
        }
        expect(headers.has('access-control-allow-credentials')).to.equal(false);
      }
    });
    const OTHERS: [string, string, string[]][] = [
      ['PUT', '/tokens/abc', ['GET', 'PATCH', 'DELETE']],
      ['POST', '/tokens/abc', ['GET', 'PATCH', 'DELETE']],
      ['PUT', '/tokens', ['GET', 'POST']],
      ['PATCH', '/tokens', ['GET', 'POST']],
      ['DELETE', '/tokens', ['GET', 'POST']],
    ];
    for (const [method, path, allowed] of OTHERS) {
      it(`${method} ${path} is 405 and names the others`, async () => {
        const answer = await tokens.send(`${method} ${path}`);
        expectProblem(answer, 405);
        expect(answer.headers.get('allow')?.split(', ')).to.have.members(allowed);
      });
    }
    for (const method of ['TRACE', 'GeT', 'get', 'PROPFIND']) {
      it(`${method} is refused`, async () => {
        const answer = await raw(
          `${method} /tokens HTTP/1.1`,
          'Host: localhost',
          `BT-API-KEY: ${vault.key}`,
        );
        expect(answer?.status).to.be.oneOf([400, 405]);
      });
    }
    it('cannot be overridden by a header', async () => {
      const headers = { 'x-http-method-override': 'DELETE', 'x-method-override': 'DELETE' };
      expect((await tokens.send(`GET /tokens/${id}`, { headers })).status).to.equal(200);
      const body = { json: { type: 'token', data: 1 }, headers };
      expect((await tokens.send('POST /tokens', body)).status).to.equal(201);
      expect((await tokens.read(id)).status).to.equal(200);
    });
  });

  describe('paths', () => {
    it('may end with a slash', async () => {
      const made = await tokens.send('POST /tokens/', { json: { type: 'token', data: 1 } });
      expect(made.status).to.equal(201);
      expect((await tokens.send('GET /tokens/?size=1')).status).to.equal(200);
      expect((await tokens.send(`GET /tokens/${made.body.id}/`)).body.id).to.equal(made.body.id);
      const patch = { body: '{}', headers: { 'content-type': 'application/merge-patch+json' } };
      expect((await tokens.send(`PATCH /tokens/${made.body.id}/`, patch)).status).to.equal(200);
      expect((await tokens.send(`DELETE /tokens/${made.body.id}/`)).status).to.equal(204);
    });
    it('with an empty segment are 404', async () => {
      for (const target of ['//tokens', '/tokens//', `/tokens//${id}`]) {
        const key = `BT-API-KEY: ${vault.key}`;
        expect((await raw(`GET ${target} HTTP/1.1`, 'Host: localhost', key))?.status).to.equal(404);
      }
    });
  });

  describe('headers', () => {
    it('of every answer are the same', async () => {
      for (const [line, status] of [
        [`GET /tokens/${id}`, 200],
        ['GET /tokens', 200],
        ['GET /tokens/does-not-exist', 404],
        ['GET /tokens?page=0', 400],
        ['POST /tokens', 415],
        ['PUT /tokens', 405],
        ['GET /tokens//', 404],
        ['GET /tenants/self', 403],
      ] as const) {
        const { status: answered, headers } = await tokens.send(line);
        expect(answered, line).to.equal(status);
        expect(headers.get('bt-trace-id'), line).to.match(UUID_V4);
        expect(headers.get('cache-control'), line).to.equal('no-store');
        expect(headers.get('access-control-allow-origin'), line).to.equal('*');
        expect(headers.get('access-control-expose-headers'), line).to.contain('bt-trace-id');
        expect(headers.has('x-powered-by') || headers.has('server'), line).to.equal(false);
      }
    });
    it('keep a trace id of the caller that is one', async () => {
      const send = async (trace: string) =>
        (await tokens.send('GET /tokens', { headers: { 'bt-trace-id': trace } })).headers.get(
          'bt-trace-id',
        );
      expect(await send('caller-7')).to.equal('caller-7');
      expect(await send('x'.repeat(5_000))).not.to.equal('x'.repeat(5_000));
    });
    it('sent twice are refused', async () => {
      const key = `BT-API-KEY: ${vault.key}`;
      const answer = await raw('GET /tokens HTTP/1.1', 'Host: localhost', key, key);
      expect(answer?.status).to.equal(400);
    });
    it('of a deletion have no body and no type', async () => {
      const { id: gone } = await tokens.created({ type: 'token', data: 1 });
      const { status, headers, text } = await tokens.remove(gone);
      expect([status, text, headers.get('content-type')]).to.deep.equal([204, '', null]);
    });
  });

  it('answers pipelined requests in order, each by its own key', async () => {
    const other = await vault.control.addTenant('Pipelined');
    const otherKey = await vault.keyWith({ permissions: ['token:read'] }, other);
    const request = (key: string) =>
      [`GET /tokens/${id} HTTP/1.1`, 'Host: localhost', `BT-API-KEY: ${key}`, '', ''].join('\r\n');
    const bytes = request(vault.key) + request(otherKey) + request('wrong') + request(vault.key);
    const { answers } = await exchange(Number(new URL(vault.url).port), bytes, 4);
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 404, 401, 200]);
  });
});
