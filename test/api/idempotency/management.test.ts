import { expect } from 'chai';
import { purgeDeletedTenants } from '../../../control-plane/tenants/purge-deleted-tenants.ts';
import type { TestTenant } from '../../support/control-plane.ts';
import { type Answer, type Call, call, type JsonObject } from '../../support/http-call.ts';
import { expectProblem } from '../tokens/token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from '../tokens/vault.ts';
import { countRecords, expectReplay, keyed, newKey } from './keyed.ts';

const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
const PROXY = { name: 'Proxy', destination_url: 'https://example.com' };
const REACTOR = { name: 'Reactor', code: 'module.exports = async () => ({ raw: 1 })' };

describe('management with an idempotency key', () => {
  let vault: Vault;
  let key: string;

  before(async () => {
    vault = await startVault();
    key = vault.control.tenant.managementKey;
  });
  after(() => vault?.stop());

  /** To the public port, which relays it. */
  const manage = (line: string, rest: Call = {}): Promise<Answer<JsonObject>> =>
    call(vault.url, line, { key, ...rest });
  const application = (name = 'App') => ({ name, type: 'private', rules: REVEAL_ALL });
  const create = (name: string, json: unknown, idempotencyKey = newKey()) =>
    manage(`POST /${name}`, keyed(idempotencyKey, { json }));

  it('creates an application once, and answers its key again', async () => {
    const idempotencyKey = newKey();
    const first = await create('applications', application('Once'), idempotencyKey);
    expect(first.status, first.text).to.equal(201);
    expectReplay(await create('applications', application('Twice'), idempotencyKey), first);
    const { body } = await manage('GET /applications?size=100');
    const names = (body.data as JsonObject[]).map(({ name }) => name);
    expect(names.filter((name) => name === 'Once')).to.have.length(1);
    expect(names).not.to.contain('Twice');
    const json = { type: 'token', data: 'x' };
    const own = { key: String(first.body.key), json };
    expect((await call(vault.url, 'POST /tokens', own)).status).to.equal(201);
  });

  it('regenerates a key once', async () => {
    const made = await create('applications', application());
    const line = `POST /applications/${made.body.id}/regenerate`;
    const idempotencyKey = newKey();
    const first = await manage(line, keyed(idempotencyKey));
    expect(first.body.key).to.be.a('string').and.not.equal(made.body.key);
    expectReplay(await manage(line, keyed(idempotencyKey)), first);
    const json = { type: 'token', data: 'x' };
    const own = { key: String(first.body.key), json };
    expect((await call(vault.url, 'POST /tokens', own)).status).to.equal(201);
  });

  it('keeps no key in clear', async () => {
    const made = await create('applications', application());
    const { rows } = await vault.control.pool.query<{ row: string }>(
      `SELECT encode(sealed, 'escape') AS row FROM idempotency_records`,
    );
    expect(rows.length).to.be.at.least(1);
    for (const { row } of rows) expect(row).not.to.contain(String(made.body.key).slice(4));
  });

  it('creates one of 30 at once', async () => {
    const idempotencyKey = newKey();
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => create('proxies', PROXY, idempotencyKey)),
    );
    const made = answers.filter(({ status }) => status === 201);
    expect(new Set(made.map(({ text }) => text)).size).to.equal(1);
    for (const { status, text } of answers) {
      if (status !== 201) expect([status, text.includes('in progress')]).to.deep.equal([409, true]);
    }
    const { body } = await manage('GET /proxies');
    expect((body.pagination as JsonObject).total_items).to.equal(1);
    await manage(`DELETE /proxies/${made[0]?.body.id}`);
  });

  it('changes once what it changes: every POST, PUT and PATCH', async () => {
    const code = 'module.exports = async () => ({ raw: 1 })';
    const formula = { name: 'Formula', type: 'private', code };
    const made = {
      applications: (await create('applications', application())).body.id,
      proxies: (await create('proxies', PROXY)).body.id,
      reactors: (await create('reactors', REACTOR)).body.id,
      'reactor-formulas': (await create('reactor-formulas', formula)).body.id,
    };
    const calls: [string, Call][] = [
      [`PUT /applications/${made.applications}`, { json: { name: 'A', rules: REVEAL_ALL } }],
      [`PUT /proxies/${made.proxies}`, { json: { ...PROXY, name: 'P' } }],
      [`PATCH /proxies/${made.proxies}`, { json: { name: 'Q' }, headers: MERGE_PATCH }],
      [`PUT /reactors/${made.reactors}`, { json: { ...REACTOR, name: 'R' } }],
      [`PATCH /reactors/${made.reactors}`, { json: { name: 'S' }, headers: MERGE_PATCH }],
      [`PUT /reactor-formulas/${made['reactor-formulas']}`, { json: { ...formula, name: 'F' } }],
      ['PUT /tenants/self', { json: { name: 'Tenant' } }],
    ];
    for (const [line, rest] of calls) {
      const idempotencyKey = newKey();
      const changes = await countChanges();
      const first = await manage(line, keyed(idempotencyKey, rest));
      expect(first.status, `${line} ${first.text}`).to.be.within(200, 204);
      const again = await manage(line, keyed(idempotencyKey, { ...rest, json: { name: 'other' } }));
      expectReplay(again, first);
      expect(await countChanges(), line).to.equal(changes + 1);
    }
  });
  const countChanges = async () => {
    const { rows } = await vault.control.pool.query<{ count: number }>(
      'SELECT count(*)::int4 AS count FROM config_changes',
    );
    return rows[0]?.count ?? 0;
  };

  it('keeps no failure', async () => {
    const idempotencyKey = newKey();
    expectProblem(await create('proxies', { name: 'Proxy' }, idempotencyKey), 400);
    const id = '00000000-0000-4000-8000-000000000001';
    const put = keyed(idempotencyKey, { json: PROXY });
    expectProblem(await manage(`PUT /proxies/${id}`, put), 404);
    const made = await create('proxies', PROXY, idempotencyKey);
    expect(made.status).to.equal(201);
    await manage(`DELETE /proxies/${made.body.id}`);
  });

  it('replays an answer whose resource is gone, and makes nothing', async () => {
    const idempotencyKey = newKey();
    const first = await create('proxies', PROXY, idempotencyKey);
    expect((await manage(`DELETE /proxies/${first.body.id}`)).status).to.equal(204);
    expectReplay(await create('proxies', PROXY, idempotencyKey), first);
    expectProblem(await manage(`GET /proxies/${first.body.id}`), 404);
  });

  it('refuses what is no key, two of them too, after authentication', async () => {
    for (const bad of [' ', 'a b', 'k'.repeat(256), 'a, b']) {
      expectProblem(await create('proxies', PROXY, bad), 400);
    }
    const direct = `http://localhost:${vault.control.port}`;
    const twice = await call(direct, 'POST /proxies', {
      ...keyed('one', { json: PROXY, key }),
      headers: { 'bt-idempotency-key': 'one, two' },
    });
    expectProblem(twice, 400);
    const { status } = await call(direct, 'POST /proxies', keyed('a b', { json: PROXY }));
    expect(status).to.equal(401);
  });

  it('means nothing to GET and DELETE', async () => {
    const records = await countRecords(vault.control.pool);
    const idempotencyKey = newKey();
    const { body } = await manage('POST /proxies', { json: PROXY });
    const line = `/proxies/${body.id}`;
    expect((await manage(`GET ${line}`, keyed(idempotencyKey))).body.name).to.equal('Proxy');
    await manage(`PATCH ${line}`, { json: { name: 'Changed' }, headers: MERGE_PATCH });
    expect((await manage(`GET ${line}`, keyed(idempotencyKey))).body.name).to.equal('Changed');
    expect((await manage(`DELETE ${line}`, keyed(idempotencyKey))).status).to.equal(204);
    expectProblem(await manage(`DELETE ${line}`, keyed(idempotencyKey)), 404);
    expect(await countRecords(vault.control.pool)).to.equal(records);
  });

  it('is independent by tenant and by application', async () => {
    const idempotencyKey = newKey();
    const json = application();
    const ids = new Set([(await create('applications', json, idempotencyKey)).body.id]);
    const other: TestTenant = await vault.control.addTenant('Other');
    for (const managementKey of [other.managementKey, await secondManagementKey()]) {
      const made = await call(vault.url, 'POST /applications', {
        ...keyed(idempotencyKey, { json }),
        key: managementKey,
      });
      expect(made.status, made.text).to.equal(201);
      ids.add(made.body.id);
    }
    expect(ids.size).to.equal(3);
  });
  const secondManagementKey = async (permissions = ['application:create']) => {
    const json = { name: 'Second', type: 'management', permissions };
    return String((await manage('POST /applications', { json })).body.key);
  };

  it('is answered to nobody who has lost the right', async () => {
    const made = await manage('POST /applications', {
      json: { name: 'Own', type: 'management', permissions: ['application:create'] },
    });
    const own = String(made.body.key);
    const idempotencyKey = newKey();
    const send = () =>
      call(vault.url, 'POST /applications', {
        ...keyed(idempotencyKey, { json: application() }),
        key: own,
      });
    const first = await send();
    expect(first.status).to.equal(201);
    const json = { name: 'Own', permissions: ['application:read'] };
    expect((await manage(`PUT /applications/${made.body.id}`, { json })).status).to.equal(200);
    const denied = await send();
    expectProblem(denied, 403);
    expect(denied.text).not.to.contain('key_');
    await manage(`DELETE /applications/${made.body.id}`);
    expectProblem(await send(), 401);
  });

  it('is gone with its tenant', async () => {
    const tenant = await vault.control.addTenant('Doomed');
    const doomed = { key: tenant.managementKey };
    const line = 'POST /applications';
    await call(vault.url, line, { ...keyed(newKey(), { json: application() }), ...doomed });
    expect((await call(vault.url, 'DELETE /tenants/self', doomed)).status).to.equal(204);
    const left = async () => {
      const { rows } = await vault.control.pool.query<{ count: number }>(
        'SELECT count(*)::int4 AS count FROM idempotency_records WHERE tenant_id = $1',
        [tenant.id],
      );
      return rows[0]?.count;
    };
    await purgeDeletedTenants(vault.control.pool);
    expect(await left()).to.equal(0);
  });
});
