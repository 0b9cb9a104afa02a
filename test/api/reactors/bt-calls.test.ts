/** The gateway's side of `req.bt` against texts that no client of ours would send. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { Route } from '../../../data-plane/serve-exchange.ts';
import { OPERATIONS } from '../../../shared/api/operations.ts';
import type { ScriptService } from '../../../shared/sandbox/script-services.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { REVEAL_ALL } from '../tokens/vault.ts';
import { type Scripts, startScripts, type TestApplication } from './scripts.ts';

const LIVE = new AbortController().signal;
const OFFERED = [
  ...['createToken', 'listTokens', 'getToken', 'updateToken', 'deleteToken', 'searchTokens'],
  ...['tokenize', 'detokenize', 'react'],
];

describe('a call that comes out of a sandbox', () => {
  let scripts: Scripts;
  let application: TestApplication;
  let service: ScriptService;

  const ask = async (request: unknown, to = service) =>
    JSON.parse(await to(JSON.stringify(request), LIVE)) as { status: number; body: JsonObject };
  /** What the script reads of a refusal that is no answer. */
  const refusal = async (text: string, signal = LIVE): Promise<unknown> => {
    try {
      await service(text, signal);
    } catch (error) {
      const { name, message, code } = error as JsonObject;
      return { name, message, code };
    }
    throw new Error('the call was answered');
  };
  const NOT_A_CALL = {
    name: 'ScriptCallError',
    message: 'This call is not available in a reactor.',
    code: 'NOT_AVAILABLE',
  };

  before(async () => {
    scripts = await startScripts();
    application = await scripts.application({ rules: REVEAL_ALL });
    service = scripts.service(application);
  });
  after(() => scripts.stop());

  const others = OPERATIONS.map(({ operationId }) => operationId).filter(
    (operationId) => !OFFERED.includes(operationId),
  );
  for (const operation of [...others, 'constructor', '__proto__', 'toString', '', 'GETTOKEN']) {
    it(`is refused as ${JSON.stringify(operation)}`, async () => {
      const text = JSON.stringify({ operation, id: 'x', body: '{}' });
      expect(await refusal(text)).to.deep.equal(NOT_A_CALL);
    });
  }

  const TEXTS = [
    ...[
      '',
      'null',
      '7',
      '"createToken"',
      '[]',
      '{}',
      '{"operation":',
      '{"operation":["getToken"]}',
    ],
    ...['{"operation":"getToken","id":7}', '{"operation":"getToken","id":null}'],
    ...['{"operation":"createToken","body":{"type":"token","data":1}}'],
    ...[
      '{"operation":"listTokens","query":{"page":1}}',
      '{"__proto__":{"operation":"listTokens"}}',
    ],
    '{"constructor":{"prototype":{"operation":"listTokens"}}}',
  ];
  for (const text of TEXTS) {
    it(`is refused as ${text === '' ? 'an empty text' : text}`, async () => {
      expect(await refusal(text)).to.deep.equal(NOT_A_CALL);
    });
  }

  it('is answered or refused, never a fault of ours, whatever its members are', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 30 });
    const request = fc.record(
      {
        operation: fc.constantFrom(...OFFERED.filter((name) => name !== 'react')),
        id: text,
        query: fc.oneof(text, fc.constantFrom('page=-1', 'size=1e9', 'id=%ff', 'a&'.repeat(2_000))),
        body: fc.oneof(text, fc.json(), fc.constantFrom('{"__proto__":1,"type":"token","data":1}')),
      },
      { requiredKeys: ['operation'] },
    );
    await fc.assert(
      fc.asyncProperty(request, async (members) => {
        const { status } = await ask(members);
        expect(status).to.be.within(200, 431);
      }),
      { numRuns: 300 },
    );
  });

  it('has no path: an id is an id', async () => {
    const ids = [
      '../applications',
      '..',
      '',
      'a/b',
      'x?y',
      'x#y',
      '%2e%2e%2f',
      'a\u0000b',
      '\ud800',
    ];
    for (const id of ids) {
      for (const operation of ['getToken', 'deleteToken']) {
        expect((await ask({ operation, id })).status, JSON.stringify(id)).to.equal(404);
      }
      const update = { operation: 'updateToken', id, body: '{"metadata":null}' };
      expect((await ask(update)).status, JSON.stringify(id)).to.equal(404);
    }
    expect((await ask({ operation: 'getToken' })).status).to.equal(404);
  });

  it('takes no key, no other tenant and no transaction from the text', async () => {
    const extras = {
      apiKey: scripts.vault.control.tenant.managementKey,
      tenant_id: '00000000-0000-4000-8000-000000000000',
      transactionId: 'x',
      headers: { 'bt-transaction-id': 'x' },
      contentType: 'text/plain',
    };
    const body = JSON.stringify({ type: 'token', data: 'x', ...extras });
    const created = await ask({ operation: 'createToken', body, ...extras });
    expect(created.status).to.equal(201);
    expect(created.body).to.include({
      tenant_id: application.tenant_id,
      created_by: application.id,
    });
  });

  it('keeps data with a member named __proto__ to itself', async () => {
    const body = '{"type":"token","data":{"__proto__":{"polluted":1},"constructor":{"a":1}}}';
    const { id } = (await ask({ operation: 'createToken', body })).body;
    const text = await service(JSON.stringify({ operation: 'getToken', id }), LIVE);
    expect(text).to.include('"data":{"__proto__":{"polluted":1},"constructor":{"a":1}}');
    expect({}).not.to.have.property('polluted');
  });

  it('is the same problem as over HTTP when it fails', async () => {
    const json = { type: 'card', data: { number: 'x' } };
    const http = await call(scripts.vault.url, 'POST /tokens', { key: application.key, json });
    const mine = await ask({ operation: 'createToken', body: JSON.stringify(json) });
    expect(mine).to.deep.equal({ status: http.status, body: http.body });
    const missing = await call(scripts.vault.url, 'GET /tokens/none', { key: application.key });
    const notFound = await ask({ operation: 'getToken', id: 'none' });
    expect(notFound).to.deep.equal({ status: 404, body: missing.body });
  });

  it('tells nothing of a fault of ours', async () => {
    const broken = scripts.service(application, {
      findApplication: () => Promise.reject(new Error('password authentication failed')),
    });
    const { status, body } = await ask({ operation: 'listTokens' }, broken);
    expect(status).to.equal(500);
    expect(body.detail).to.equal('An unexpected error occurred; the trace id finds it in the log');
  });

  it('is 401 when the application is gone, and when its time is over', async () => {
    const gone = scripts.service({ ...application, id: '00000000-0000-4000-8000-000000000000' });
    expect((await ask({ operation: 'listTokens' }, gone)).status).to.equal(401);
    const elsewhere = await scripts.vault.control.addTenant('Elsewhere');
    const crossed = scripts.service({ ...application, tenant_id: elsewhere.id });
    expect((await ask({ operation: 'listTokens' }, crossed)).status).to.equal(401);
    const shortLived = await scripts.application({ rules: REVEAL_ALL });
    const own = scripts.service(shortLived);
    expect((await ask({ operation: 'listTokens' }, own)).status).to.equal(200);
    const expired = scripts.service(shortLived, {
      findApplication: async () => {
        const entry = await scripts.applicationById(shortLived);
        return entry && { ...entry, expires_at_ms: Date.now() - 3_600_000 };
      },
    });
    expect((await ask({ operation: 'listTokens' }, expired)).status).to.equal(401);
  });

  it('is not begun when the run is over', async () => {
    const text = JSON.stringify({
      operation: 'createToken',
      body: '{"type":"token","data":"late"}',
    });
    const over = AbortSignal.abort();
    expect(await refusal(text, over)).to.have.property('message', 'The run is over.');
  });

  describe('to a reactor', () => {
    const reacting = (depth: number, react: Route): ScriptService =>
      scripts.service(application, { depth, ends_at_ms: 7 }, react);
    const text = '{"operation":"react","id":"a/../b","body":"{\\"args\\":1}"}';

    it('says from which run it comes, and carries the body', async () => {
      const seen: unknown[] = [];
      const react: Route = async (exchange, { application_id }) => {
        const { params, callingRun, head } = exchange;
        const { depth, ends_at_ms } = callingRun ?? {};
        seen.push({ params, depth, ends_at_ms, application_id, body: await exchange.json(99) });
        expect(head).to.include({ contentType: 'application/json', traceId: 'trace' });
        exchange.confirmed = true;
        return { status: 200, body: '{"raw":[1]}' };
      };
      expect(await reacting(2, react)(text, LIVE)).to.equal('{"status":200,"body":{"raw":[1]}}');
      const { id: application_id } = application;
      const asked = { params: { id: 'a/../b' }, depth: 2, ends_at_ms: 7, body: { args: 1 } };
      expect(seen).to.deep.equal([{ ...asked, application_id }]);
    });

    it('is refused three reactors deep', async () => {
      const react: Route = () => Promise.reject(new Error('it must not come here'));
      const { status, body } = JSON.parse(await reacting(3, react)(text, LIVE));
      expect(status).to.equal(400);
      expect(body.detail).to.equal('Reactors may call each other at most 3 deep');
    });

    const BODIES: [string, string, unknown][] = [
      ['text/plain', 'plain "text"', 'plain "text"'],
      ['text/html', '"},"status":201', '"},"status":201'],
      ['text/plain', '{"a":1}', { a: 1 }],
      ['application/json', '{"a":1}', { a: 1 }],
    ];
    for (const [type, body, expected] of BODIES) {
      it(`that answers ${type} ${body} is read as what it is`, async () => {
        const react: Route = async (exchange) => {
          exchange.confirmed = true;
          return { status: 402, headers: ['content-type', type], body };
        };
        const answer = JSON.parse(await reacting(1, react)(text, LIVE));
        expect(answer).to.deep.equal({ status: 402, body: expected });
      });
    }
  });
});
