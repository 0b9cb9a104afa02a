/** The secret that signs a tenant's callbacks. */
import { expect } from 'chai';
import { createDataKeys } from '../../../shared/crypto/data-keys.ts';
import { readWebhookSecrets, SECRETS_MAX } from '../../../shared/webhooks/webhook-secrets.ts';
import {
  startTestControlPlane,
  type TestControlPlane,
  type TestTenant,
} from '../../support/control-plane.ts';
import { call } from '../../support/http-call.ts';
import { expectProblem } from '../tokens/token-client.ts';

describe('POST /tenants/self/webhook-secret', () => {
  let server: TestControlPlane;
  let tenant: TestTenant;
  before(async () => {
    server = await startTestControlPlane();
  });
  beforeEach(async () => {
    tenant = await server.addTenant('Globex');
  });
  after(() => server?.stop());

  const make = (key = tenant.managementKey, headers = {}) =>
    call(server.baseUrl, 'POST /tenants/self/webhook-secret', { key, headers });
  const made = async (): Promise<string> => {
    const { status, body } = await make();
    expect(status).to.equal(201);
    expect(Object.keys(body)).to.deep.equal(['secret']);
    return String(body.secret);
  };
  /** As they sign, the newest first. */
  const signing = async (id = tenant.id): Promise<string[]> => {
    const dataKeys = createDataKeys(server.pool, server.installation);
    const keys = await readWebhookSecrets(server.pool, dataKeys, id);
    return keys.map((key) => `whsec_${key.export().toString('base64')}`);
  };

  it('makes one, and replaces it by another that signs along for 24 hours', async () => {
    expect(await signing()).to.deep.equal([]);
    const first = await made();
    expect(first).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(await signing()).to.deep.equal([first]);
    const second = await made();
    expect(await signing()).to.deep.equal([second, first]);
    const ahead = (interval: string) =>
      server.pool.query(
        `UPDATE webhook_secrets SET retires_at = retires_at - interval '${interval}'
         WHERE tenant_id = $1 AND retires_at IS NOT NULL`,
        [tenant.id],
      );
    await ahead('23 hours 59 minutes 55 seconds');
    expect(await signing()).to.deep.equal([second, first]);
    await ahead('5 seconds');
    expect(await signing()).to.deep.equal([second]);
  });

  it('is kept sealed, and shown once', async () => {
    const secret = Buffer.from((await made()).slice('whsec_'.length), 'base64');
    const { rows } = await server.pool.query(
      `SELECT id, sealed, w::text AS text FROM webhook_secrets w WHERE tenant_id = $1`,
      [tenant.id],
    );
    const [row] = rows;
    expect(row.sealed.includes(secret)).to.equal(false);
    expect(row.text).not.to.contain(secret.toString('base64'));
    // Bound to its tenant: a row that is moved does not open.
    const other = await server.addTenant('Initech');
    await server.pool.query(
      'INSERT INTO webhook_secrets (tenant_id, id, sealed) VALUES ($1, $2, $3)',
      [other.id, row.id, row.sealed],
    );
    const moved = await signing(other.id).then(
      () => 'opened',
      () => 'broken',
    );
    expect(moved).to.equal('broken');
    await server.pool.query('DELETE FROM webhook_secrets WHERE tenant_id = $1', [other.id]);
  });

  it('is one tenant’s, and for keys that may update the tenant', async () => {
    const other = await server.addTenant('Initech');
    const secret = await made();
    expect(await signing(other.id)).to.deep.equal([]);
    const json = { name: 'Reader', type: 'management', permissions: ['tenant:read'] };
    const reader = await call(server.baseUrl, 'POST /applications', {
      ...{ key: tenant.managementKey, json },
    });
    expectProblem(await make(String(reader.body.key)), 403);
    expectProblem(await make('key_wrong'), 401);
    expect(await signing()).to.deep.equal([secret]);
  });

  it('has one current secret, whoever else replaces it at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => make()));
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(5).fill(201));
    const { rows } = await server.pool.query(
      'SELECT id FROM webhook_secrets WHERE tenant_id = $1 AND retires_at IS NULL',
      [tenant.id],
    );
    expect(rows).to.have.length(1);
    expect(new Set(await signing())).to.deep.equal(new Set(answers.map(({ body }) => body.secret)));
  });

  it('keeps the newest few of those that are replaced faster than they retire', async () => {
    const secrets: string[] = [];
    for (let index = 0; index < SECRETS_MAX + 3; index += 1) secrets.unshift(await made());
    expect(await signing()).to.deep.equal(secrets.slice(0, SECRETS_MAX));
  });

  it('answers the same secret again under the same idempotency key', async () => {
    const headers = { 'bt-idempotency-key': 'once' };
    const first = await make(tenant.managementKey, headers);
    const again = await make(tenant.managementKey, headers);
    expect([again.status, again.text]).to.deep.equal([201, first.text]);
    expect(await signing()).to.deep.equal([first.body.secret]);
  });
});
