/**
 * A tenant is deleted, and a data plane that has its application in its cache, but none of its keys, was
 * not told: whoever still has a key of the tenant is unknown there, whatever it asks for.
 */
import { randomUUID } from 'node:crypto';
import { keyed, newKey } from '../api/idempotency/keyed.ts';
import { expectProblem } from '../api/tokens/token-client.ts';
import { startVault, type Vault } from '../api/tokens/vault.ts';
import { type Call, call } from '../support/http-call.ts';

describe('a tenant that was deleted unnoticed', () => {
  let vault: Vault;
  before(async () => {
    vault = await startVault();
  });
  after(() => vault?.stop());

  const permissions = ['token:create', 'token:read', 'token:update', 'token:search'];
  const json = { type: 'token', data: 'x' };
  const patch = { body: '{}', headers: { 'content-type': 'application/merge-patch+json' } };
  const inTransaction = { json, headers: { 'bt-transaction-id': randomUUID() } };
  const requests: [string, Call][] = [
    ['POST /tokens', { json }],
    ['POST /tokens', { json: { ...json, deduplicate_token: true } }],
    ['POST /tokens', inTransaction],
    ['POST /tokenize', { json }],
    ['POST /tokenize', inTransaction],
    ['PATCH /tokens/some-id', patch],
    ['POST /tokens/search', { json: { query: 'metadata.a:b' } }],
    ['POST /transactions', {}],
    [`POST /transactions/${randomUUID()}/commit`, {}],
  ];

  /** An application that is cached, and whose tenant is gone. */
  async function goneKey(): Promise<string> {
    const { pool } = vault.control;
    const tenant = await vault.control.addTenant('Gone');
    const key = await vault.keyWith({ permissions }, tenant);
    expectProblem(await call(vault.url, 'GET /tokens/some-id', { key }), 404);
    await pool.query('DELETE FROM tenant_keys WHERE tenant_id = $1', [tenant.id]);
    await pool.query('DELETE FROM applications WHERE tenant_id = $1', [tenant.id]);
    await pool.query('DELETE FROM key_directory WHERE tenant_id = $1', [tenant.id]);
    await pool.query('DELETE FROM tenants WHERE id = $1', [tenant.id]);
    return key;
  }

  for (const [line, rest] of requests) {
    const name = `answers ${line} ${JSON.stringify(rest.headers ?? rest.json ?? {})} with 401`;
    it(name.replaceAll(/[0-9a-f-]{36}/g, 'uuid'), async () => {
      expectProblem(await call(vault.url, line, { ...rest, key: await goneKey() }), 401);
      const withKey = { ...keyed(newKey(), rest), key: await goneKey() };
      expectProblem(await call(vault.url, line, withKey), 401);
    });
  }
});
