import { expect } from 'chai';
import type { PermissionDescription } from '../../../shared/access/permissions.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { call, type JsonObject } from '../../support/http-call.ts';

describe('GET /permissions', () => {
  let server: TestControlPlane;

  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());

  const ask = <T = PermissionDescription[]>(query = '') =>
    call<T>(server.baseUrl, `GET /permissions/${query}`, { key: server.tenant.managementKey });

  it('answers a bare array of all permissions', async () => {
    const { status, body } = await ask();
    expect(status).to.equal(200);
    expect(body).to.have.length(30);
    expect(body).to.deep.include({
      type: 'token:read',
      description: 'Read tokens',
      application_types: ['private'],
    });
  });

  it('answers those an application type may hold', async () => {
    const { body } = await ask('?application_type=public');
    expect(body.map(({ type }) => type)).to.deep.equal(['token:create', 'token:update']);
  });

  for (const query of [
    '?application_type=other',
    '?application_type=',
    '?application_type=public&application_type=private',
  ]) {
    it(`refuses ${query}`, async () => {
      const { status, body } = await ask<JsonObject>(query);
      expect(status).to.equal(400);
      expect(body.errors).to.have.all.keys('application_type');
    });
  }

  it('needs no permission, only a key', async () => {
    const made = await call<{ key: string }>(server.baseUrl, 'POST /applications', {
      key: server.tenant.managementKey,
      json: { name: 'x', type: 'public', permissions: ['token:create'] },
    });
    const { key } = made.body;
    expect((await call(server.baseUrl, 'GET /permissions', { key })).status).to.equal(200);
    expect((await call(server.baseUrl, 'GET /permissions')).status).to.equal(401);
  });
});
