import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import { OPERATIONS } from '../../../shared/api/operations.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { call } from '../../support/http-call.ts';

interface Document {
  openapi: string;
  paths: Record<string, Record<string, { operationId: string; security: unknown[] }>>;
  components: { schemas: Record<string, unknown> };
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

  it('is a valid OpenAPI 3.1 document', async () => {
    const result = await new Validator().validate(JSON.parse(JSON.stringify(document)));
    expect(result.errors ?? []).to.deep.equal([]);
    expect(result.valid).to.equal(true);
    expect(document.openapi).to.match(/^3\.1\./);
  });

  it('has every operation, and nothing else', () => {
    const documented = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => `${operationId} ${method} ${path}`),
    );
    const known = OPERATIONS.map(
      ({ operationId, method, path }) => `${operationId} ${method.toLowerCase()} ${path}`,
    );
    expect(documented.toSorted()).to.deep.equal(known.toSorted());
    expect(new Set(OPERATIONS.map(({ operationId }) => operationId)).size).to.equal(known.length);
  });

  it('says which operations need a key', () => {
    const open = Object.values(document.paths)
      .flatMap((item) => Object.values(item))
      .filter(({ security }) => security.length === 0)
      .map(({ operationId }) => operationId);
    expect(open).to.deep.equal(['getOpenApi']);
  });

  it('names the shapes it shares, and every reference leads to one', () => {
    expect(document.components.schemas).to.include.all.keys(
      ...['Problem', 'Pagination', 'Application', 'AccessRule', 'Tenant', 'Token'],
      ...['CreateTokenRequest', 'UpdateTokenRequest', 'CreateApplicationRequest'],
    );
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
      ([, reference = '']) => reference.replace('#/components/schemas/', ''),
    );
    expect(references).to.have.length.greaterThan(10);
    for (const name of references) expect(document.components.schemas).to.have.property(name);
  });
});
