/**
 * A request that was let in and then waits with its body until its right is gone: it must have no
 * effect, or a stolen key could be kept alive by keeping one request open.
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { TestTenant } from '../support/control-plane.ts';
import { call, type JsonObject } from '../support/http-call.ts';
import {
  createApplication,
  startTestPlanes,
  type TestApplication,
  type TestPlanes,
} from './planes.ts';

describe('a request that outlives its right', () => {
  let planes: TestPlanes;
  let url: string;
  let controlUrl: string;
  before(async () => {
    planes = await startTestPlanes({ LOG_LEVEL: 'silent' });
    url = planes.urls[0] ?? '';
    controlUrl = `http://localhost:${planes.controlPlane.port}`;
  });
  after(() => planes.stop());

  /** Sends the body only after `meanwhile`, which begins when the server has asked for the body. */
  async function slowly(
    baseUrl: string,
    line: string,
    { key, json, type = 'application/json' }: { key: string; json: JsonObject; type?: string },
    meanwhile: () => Promise<unknown>,
  ): Promise<{ status: number; body: string }> {
    const [method, path] = line.split(' ');
    const headers = { 'bt-api-key': key, 'content-type': type, expect: '100-continue' };
    const sending = request(baseUrl + path, { method, headers, agent: false });
    sending.flushHeaders();
    const answered = once(sending, 'response');
    const refused = answered.then(([{ statusCode }]) => {
      throw new Error(`answered ${statusCode} before the body was sent`);
    });
    await Promise.race([once(sending, 'continue'), refused]);
    refused.catch(() => undefined);
    await meanwhile();
    sending.end(JSON.stringify(json));
    const [response] = (await answered) as [IncomingMessage];
    return { status: response.statusCode ?? 0, body: await text(response) };
  }

  async function regenerate({ managementKey }: TestTenant, id: string): Promise<void> {
    const line = `POST /applications/${id}/regenerate`;
    expect((await call(url, line, { key: managementKey })).status).to.equal(200);
  }

  const tokenCalls: [string, JsonObject, string][] = [
    ['POST /tokens', { id: 'late', type: 'token', data: 'late' }, 'application/json'],
    [
      'POST /tokens',
      { id: 'late', type: 'token', data: 'late', deduplicate_token: true },
      'application/json',
    ],
    ['PATCH /tokens/early', { data: 'late' }, 'application/merge-patch+json'],
  ];
  for (const [line, json, type] of tokenCalls) {
    it(`is refused by the data plane: ${line}`, async () => {
      const tenant = await planes.addTenant('Acme');
      const owner = await createApplication(url, tenant);
      const robbed: TestApplication = await createApplication(url, tenant);
      const early = { id: 'early', type: 'token', data: 'early' };
      await call(url, 'POST /tokens', { key: owner.key, json: early });
      const { status, body } = await slowly(url, line, { key: robbed.key, json, type }, () =>
        regenerate(tenant, robbed.id),
      );
      expect(status, body).to.equal(401);
      const tokens = await call(url, 'GET /tokens', { key: owner.key });
      expect(tokens.body.data).to.have.lengthOf(1);
      expect(tokens.text).to.contain('"data":"early"').and.not.contain('late');
    });
  }

  it('cannot make itself a new management key', async () => {
    const tenant = await planes.addTenant('Acme');
    const json = { name: 'Back door', type: 'management', permissions: ['application:create'] };
    const { status, body } = await slowly(
      controlUrl,
      'POST /applications',
      { key: tenant.managementKey, json },
      () => regenerate(tenant, tenant.managementApplicationId),
    );
    expect(status, body).to.equal(401);
    const { rows } = await planes.admin.query(
      `SELECT name FROM applications WHERE tenant_id = $1 AND name = 'Back door'`,
      [tenant.id],
    );
    expect(rows).to.deep.equal([]);
  });

  it('cannot use a permission that was taken away from a management key', async () => {
    const tenant = await planes.addTenant('Acme');
    const made = await createApplication(url, tenant, {
      type: 'management',
      permissions: ['application:create', 'application:read'],
    });
    const { managementKey: key } = tenant;
    const json = { name: 'Back door', type: 'management', permissions: ['application:create'] };
    const { status, body } = await slowly(
      controlUrl,
      'POST /applications',
      { key: made.key, json },
      () =>
        call(url, `PUT /applications/${made.id}`, {
          key,
          json: { name: 'Read only', permissions: ['application:read'] },
        }),
    );
    expect(status, body).to.equal(403);
  });

  it('changes nothing when its tenant was deleted', async () => {
    const tenant = await planes.addTenant('Acme');
    const { managementKey: key } = tenant;
    const json = { name: 'Undead' };
    const { status } = await slowly(controlUrl, 'PUT /tenants/self', { key, json }, () =>
      call(url, 'DELETE /tenants/self', { key }),
    );
    expect(status).to.equal(401);
  });

  it('is served when its right is still there', async () => {
    const tenant = await planes.addTenant('Acme');
    const { managementKey: key } = tenant;
    const json = { name: 'Still here' };
    const other = await createApplication(url, tenant);
    const { status } = await slowly(controlUrl, 'PUT /tenants/self', { key, json }, () =>
      regenerate(tenant, other.id),
    );
    expect(status).to.equal(200);
  });
});
