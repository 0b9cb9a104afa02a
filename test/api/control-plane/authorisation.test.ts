import { expect } from 'chai';
import type { Operation } from '../../../shared/api/operation.ts';
import { OPERATIONS } from '../../../shared/api/operations.ts';
import { generateApiKey } from '../../../shared/api-keys.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { call, type JsonObject } from '../../support/http-call.ts';

const MANAGED = OPERATIONS.filter(({ plane }) => plane === 'control');
const NEEDS_KEY = MANAGED.filter(({ permission }) => permission !== 'no_key');
const RANDOM_ID = '00000000-0000-4000-8000-000000000000';

function lineOf({ method, path }: Operation, id = RANDOM_ID): string {
  return `${method} ${path.replace('{id}', id)}`;
}

describe('who may call the control plane', () => {
  let server: TestControlPlane;
  let other: TestTenant;

  before(async () => {
    server = await startTestControlPlane();
    other = await server.addTenant('Other');
  });
  after(() => server.stop());

  describe('every operation that needs a key', () => {
    for (const operation of NEEDS_KEY) {
      it(`${operation.operationId} refuses a request without one`, async () => {
        const { status, body, headers } = await call(server.baseUrl, lineOf(operation));
        expect(status).to.equal(401);
        expect(body).to.include({ title: 'Unauthorized', status: 401 });
        expect(headers.get('content-type')).to.match(/^application\/problem\+json/);
      });
    }

    const restricted = NEEDS_KEY.filter(({ permission }) => permission !== 'any_key');
    for (const operation of restricted) {
      it(`${operation.operationId} needs ${operation.permission}`, async () => {
        const key = await keyWithout(operation.permission);
        const { status, body } = await call(server.baseUrl, lineOf(operation), { key });
        expect(status).to.equal(403);
        expect(body).to.include({ title: 'Forbidden' });
      });
    }
  });

  it('answers the same to every kind of bad key', async () => {
    const { managementKey } = server.tenant;
    const last = managementKey.endsWith('2') ? '3' : '2';
    const bad = [
      '',
      '   ',
      'key_',
      'x'.repeat(10_000),
      managementKey.slice(0, -1) + last,
      `${managementKey} `.repeat(2),
      generateApiKey(),
      "' OR 1=1 --",
    ];
    const answers = await Promise.all(
      bad.map((key) => call(server.baseUrl, 'GET /tenants/self', { key })),
    );
    for (const { status, text } of answers) {
      expect(status).to.equal(401);
      expect(text).to.equal(answers[0]?.text);
    }
  });

  it('reads a key from its header only', async () => {
    const { managementKey: key } = server.tenant;
    const headers = {
      authorization: `Bearer ${key}`,
      cookie: `bt-api-key=${key}`,
      'x-api-key': key,
    };
    const line = `GET /tenants/self?bt-api-key=${key}`;
    expect((await call(server.baseUrl, line, { headers })).status).to.equal(401);
  });

  describe('another tenant', () => {
    // Of the other resources: test/security/tenancy.test.ts.
    for (const operation of NEEDS_KEY.filter(({ path }) => path.startsWith('/applications/{id}'))) {
      it(`${operation.operationId} does not tell its applications from none`, async () => {
        const json = operation.body && { name: 'x', permissions: ['tenant:read'] };
        const ask = (id: string) =>
          call(server.baseUrl, lineOf(operation, id), { key: server.tenant.managementKey, json });
        const foreign = await ask(other.managementApplicationId);
        const unknown = await ask(RANDOM_ID);
        expect(foreign.status).to.equal(404);
        expect(foreign.text).to.equal(unknown.text);
        const { status } = await call(server.baseUrl, 'GET /applications/key', {
          key: other.managementKey,
        });
        expect(status).to.equal(200);
      });
    }

    it('lists and counts its own applications only', async () => {
      const { managementKey: key, managementApplicationId: own } = server.tenant;
      const line = `GET /applications?id=${other.managementApplicationId}&id=${own}`;
      const { body } = await call<{ pagination: JsonObject; data: JsonObject[] }>(
        server.baseUrl,
        line,
        { key },
      );
      expect(body.data.map(({ id }) => id)).to.deep.equal([own]);
      expect(body.pagination.total_items).to.equal(1);
    });
  });

  /** The key of an application that may do everything of the control plane but this. */
  async function keyWithout(permission: string): Promise<string> {
    const permissions = MANAGED.map((operation) => operation.permission).filter(
      (name) => name.includes(':') && name !== permission,
    );
    const { body } = await call<{ key: string }>(server.baseUrl, 'POST /applications', {
      key: server.tenant.managementKey,
      json: { name: 'Limited', type: 'management', permissions },
    });
    return body.key;
  }
});
