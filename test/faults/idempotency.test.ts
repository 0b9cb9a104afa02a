/**
 * Idempotency keys when something breaks in between: a lost answer of the database, a client that goes
 * away, a process that is killed, a twin that commits in the narrowest moment (attacks C-09).
 */
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { createDataKeys } from '../../shared/crypto/data-keys.ts';
import { idempotencyScope } from '../../shared/idempotency/claim.ts';
import { sealAnswer } from '../../shared/idempotency/kept-answer.ts';
import { expectReplay, keyed, newKey } from '../api/idempotency/keyed.ts';
import { type HeldDestination, startHeldDestination } from '../api/reactors/held-destination.ts';
import type { TokenBody } from '../api/tokens/token-client.ts';
import { startVault, type Vault } from '../api/tokens/vault.ts';
import { type Answer, type Call, call } from '../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';
import { type PlaneBehindDropper, startPlaneBehindDropper } from './plane-behind-dropper.ts';

const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };

describe('idempotency keys when the answer of the database is lost', () => {
  let vault: Vault;
  let behind: PlaneBehindDropper;

  before(async () => {
    vault = await startVault();
    // Of the statement of creates, which commits by itself, and of all others' COMMIT.
    behind = await startPlaneBehindDropper(vault, ['COMMIT', 'insert-tokens-keyed']);
  });
  after(async () => {
    await behind?.stop();
    await vault?.stop();
  });

  const send = (line: string, key: string, rest: Call) =>
    call<TokenBody>(behind.url, line, { ...keyed(key, rest), key: vault.key });
  const total = async () => (await vault.tokens.list('?size=0')).body.pagination.total_items;

  /** Sends once in vain, though it had its effect, and then again. */
  async function lostThenSent(line: string, rest: Call): Promise<Answer<TokenBody>> {
    const { dropper } = behind;
    const key = newKey();
    const lost = dropper.dropped();
    dropper.drop(1);
    const vain = await send(line, key, rest);
    expect([vain.status, vain.headers.get('retry-after')]).to.deep.equal([503, '1']);
    expect(dropper.dropped()).to.equal(lost + 1);
    const again = await send(line, key, rest);
    expectReplay(await send(line, key, rest), again);
    return again;
  }

  it('create one token', async () => {
    for (const deduplicate_token of [false, true]) {
      const before = await total();
      const json = { type: 'token', data: randomUUID(), deduplicate_token };
      expect((await lostThenSent('POST /tokens', { json })).status).to.equal(201);
      expect(await total()).to.equal(before + 1);
    }
  });
  it('patch once', async () => {
    const { id } = await vault.tokens.created({ type: 'token', data: { n: 1 } });
    const body = JSON.stringify({ data: { m: 2 } });
    const line = `PATCH /tokens/${id}`;
    const patched = await lostThenSent(line, { body, headers: MERGE_PATCH });
    expect(patched.status, patched.text).to.equal(200);
    expect((await vault.tokens.read(id)).body.modified_at).to.equal(patched.body.modified_at);
  });
  it('tokenize once', async () => {
    const before = await total();
    expect((await lostThenSent('POST /tokenize', { json: ['a', 'b'] })).status).to.equal(200);
    expect(await total()).to.equal(before + 2);
  });
});

describe('idempotency keys when', () => {
  let vault: Vault;
  before(async () => {
    vault = await startVault();
  });
  after(() => vault?.stop());

  it('a client goes away: the effect and its answer are there for the retry', async () => {
    const key = newKey();
    const id = `id-${randomUUID()}`;
    const json = { type: 'token', data: 'x', id };
    const body = JSON.stringify(json);
    const lines = [
      'POST /tokens HTTP/1.1',
      'host: localhost',
      `bt-api-key: ${vault.key}`,
      `bt-idempotency-key: ${key}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
    ];
    const socket = connect(Number(new URL(vault.url).port), '127.0.0.1');
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
    while ((await vault.tokens.read(id)).status !== 200) await delay(10);
    const again = await vault.tokens.send('POST /tokens', keyed(key, { json }));
    expect([again.status, again.body.id]).to.deep.equal([201, id]);
  });

  it('a twin commits after the look and before the insert: its answer, and nobody else waits', async () => {
    const { pool, installation, tenant } = vault.control;
    const keys = await createDataKeys(pool, installation).forTenant(tenant.id);
    const own = await vault.tokens.created({ type: 'token', data: 'x' });
    const key = newKey();
    const operation = { method: 'POST', path: '/tokens' } as const;
    const parts = { application_id: own.created_by, operation, params: [], key };
    const claim = { tenant_id: tenant.id, scope: idempotencyScope(keys.search, parts), keys };
    const sealed = sealAnswer(claim, { status: 201, body: '{"the":"twin"}' });

    // The twin has its record, but has not committed, and has not taken the lock.
    const twin = new pg.Client({ connectionString: vault.control.database.adminConnectionString });
    await twin.connect();
    await twin.query('BEGIN');
    await twin.query(
      'INSERT INTO idempotency_records (tenant_id, scope, sealed) VALUES ($1, $2, $3)',
      [claim.tenant_id, claim.scope, sealed],
    );
    const create = (rest: Call, id: string) =>
      vault.tokens.send('POST /tokens', { ...rest, json: { type: 'token', data: 'x', id } });
    const ids = Array.from({ length: 40 }, () => `id-${randomUUID()}`);
    const [first = '', ...others] = ids;
    const answering = Promise.all([
      create(keyed(key), first),
      ...others.map((id, index) => create(index % 2 === 0 ? {} : keyed(newKey()), id)),
    ]);
    while ((await waiting(twin)) === 0) await delay(5);
    await twin.query('COMMIT');
    await twin.end();
    const [answer, ...neighbours] = await answering;
    expect([answer.status, answer.text]).to.deep.equal([201, '{"the":"twin"}']);
    expect((await vault.tokens.read(first)).status).to.equal(404);
    for (const { status } of neighbours) expect(status).to.equal(201);
  });
  const waiting = async (client: pg.Client): Promise<number> => {
    const { rows } = await client.query<{ count: number }>(
      'SELECT count(*)::int4 AS count FROM pg_locks WHERE NOT granted',
    );
    return rows[0]?.count ?? 0;
  };
});

describe('a reaction with an idempotency key whose process is killed', () => {
  let sallyport: TestSallyport;
  let destination: HeldDestination;
  before(async function () {
    this.timeout(60_000);
    const settings = { SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8,::1/128', SANDBOX_HOSTS: '1' };
    sallyport = await startSallyport(settings);
    destination = await startHeldDestination();
  });
  after(async () => {
    await destination?.stop();
    await sallyport?.stop();
  });

  it('is in progress until its lease ends, and then runs again once', async function () {
    this.timeout(60_000);
    const { baseUrl, tenant, planes } = sallyport;
    const manage = async (line: string, json: unknown) =>
      (await call(baseUrl, line, { key: tenant.managementKey, json })).body;
    const caller = { name: 'Caller', type: 'private', permissions: ['token:use'] };
    const key = String((await manage('POST /applications', caller)).key);
    const code = `module.exports = async () => {
      await fetch('${destination.url}/began');
      return { raw: Math.random() };
    };`;
    const { id } = await manage('POST /reactors', { name: 'Reactor', code });
    const idempotencyKey = newKey();
    const react = () =>
      call(baseUrl, `POST /reactors/${id}/react`, { ...keyed(idempotencyKey, { json: {} }), key });

    destination.hold = () => new Promise(() => undefined);
    const killed = react().catch(() => undefined);
    while (destination.requests === 0) await delay(10);
    destination.hold = undefined;
    process.kill(planes.dataPlane.pid() as number, 'SIGKILL');
    await killed;
    const killedAt = performance.now();

    const statuses = new Set<number | undefined>();
    let answer = await react().catch(() => undefined);
    while (answer?.status !== 200) {
      statuses.add(answer?.status);
      await delay(250);
      answer = await react().catch(() => undefined);
    }
    expect(performance.now() - killedAt).to.be.lessThan(25_000);
    expect(statuses).to.include(409);
    expect(destination.requests).to.equal(2);
    expectReplay(await react(), answer);
  });
});
