import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import { isProxyPath } from '../../../data-plane/proxy/read-request.ts';
import { OPERATIONS } from '../../../shared/api/operations.ts';
import { ALLOW_HEADER } from '../../../shared/http/methods.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { call } from '../../support/http-call.ts';

interface Document {
  openapi: string;
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: { schemas: Record<string, unknown> };
}

interface DocumentedOperation {
  operationId: string;
  security: unknown[];
  parameters?: { name: string }[];
  responses: object;
}

interface ProxiedAnswer {
  headers: object;
  content: object;
}

describe('GET /openapi.json', () => {
  let server: TestControlPlane;
  let document: Document;

  before(async () => {
    server = await startTestControlPlane();
    const { status, body } = await call<Document>(server.baseUrl, 'GET /openapi.json');
    expect(status).to.equal(200);
    document = body;
  });
  after(() => server.stop());

  const operations = (): DocumentedOperation[] =>
    Object.values(document.paths).flatMap((item) => Object.values(item));

  it('is a valid OpenAPI 3.1 document', async () => {
    const result = await new Validator().validate(JSON.parse(JSON.stringify(document)));
    expect(result.errors ?? []).to.deep.equal([]);
    expect(result.valid).to.equal(true);
    expect(document.openapi).to.match(/^3\.1\./);
  });

  it('has every operation, and nothing else', () => {
    const documented = Object.entries(document.paths)
      .filter(([path]) => !isProxyPath(path))
      .flatMap(([path, item]) =>
        Object.entries(item).map(([method, { operationId }]) => `${operationId} ${method} ${path}`),
      );
    const known = OPERATIONS.map(
      ({ operationId, method, path }) => `${operationId} ${method.toLowerCase()} ${path}`,
    );
    expect(documented.toSorted()).to.deep.equal(known.toSorted());
    expect(new Set(OPERATIONS.map(({ operationId }) => operationId)).size).to.equal(known.length);
  });

  it('has /proxy and what is below it, by every method that is forwarded', () => {
    const items = Object.entries(document.paths).filter(([path]) => isProxyPath(path));
    expect(items.map(([path]) => path)).to.deep.equal(['/proxy', '/proxy/{sub_path}']);
    // A preflight is answered, not forwarded.
    const served = ALLOW_HEADER.split(', ').filter((method) => method !== 'OPTIONS');
    const ids = new Set<string>();
    for (const [path, methods] of items) {
      expect(Object.keys(methods).map((method) => method.toUpperCase())).to.have.members(served);
      for (const { operationId, parameters, security, responses } of Object.values(methods)) {
        ids.add(operationId);
        const names = parameters?.map(({ name }) => name) ?? [];
        expect(names).to.include.members(['BT-PROXY-KEY', 'bt-proxy-key', 'BT-PROXY-URL']);
        expect(names.includes('sub_path')).to.equal(path.includes('{sub_path}'));
        expect(security).to.deep.equal([{ api_key: [] }, {}]);
        const { headers, content } = (responses as Record<'default', ProxiedAnswer>).default;
        expect(headers).to.have.all.keys('BT-PROXY-DESTINATION-STATUS', 'BT-TRACE-ID');
        expect(JSON.stringify(content)).to.contain('#/components/schemas/ProxyError');
      }
    }
    expect(ids.size).to.equal(2 * served.length);
  });

  it('says which operations need a key', () => {
    const open = operations()
      .filter(({ security }) => security.length === 0)
      .map(({ operationId }) => operationId);
    expect(open).to.deep.equal(['getOpenApi']);
  });

  it('offers an idempotency key where there is an effect, and its 409', () => {
    const offering = operations().filter(({ parameters = [] }) =>
      parameters.some(({ name }) => name === 'BT-IDEMPOTENCY-KEY'),
    );
    const safe = ['searchTokens', 'detokenize'];
    const expected = OPERATIONS.filter(
      ({ operationId, method }) =>
        ['POST', 'PUT', 'PATCH'].includes(method) && !safe.includes(operationId),
    );
    expect(offering.map(({ operationId }) => operationId)).to.have.members(
      expected.map(({ operationId }) => operationId),
    );
    for (const { responses } of offering) expect(responses).to.have.property('409');
  });

  it('names the shapes it shares, and every reference leads to one', () => {
    expect(document.components.schemas).to.include.all.keys(
      ...['Problem', 'Pagination', 'Application', 'AccessRule', 'Tenant', 'Token'],
      ...['CreateTokenRequest', 'UpdateTokenRequest', 'CreateApplicationRequest', 'ProxyError'],
    );
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
      ([, reference = '']) => reference.replace('#/components/schemas/', ''),
    );
    expect(references).to.have.length.greaterThan(10);
    for (const name of references) expect(document.components.schemas).to.have.property(name);
  });
});
