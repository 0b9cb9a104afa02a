/** Redis in the hands of an attacker: nothing can be read from it, and nothing put into it is believed. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import type { ApplicationEntry } from '../../shared/config-entries/application-entry.ts';
import { NOTICE_CHANNEL } from '../../shared/config-entries/config-change.ts';
import type { TestTenant } from '../support/control-plane.ts';
import { call } from '../support/http-call.ts';
import { startRedisOrSkip, type TestRedis } from '../support/redis.ts';
import {
  counterOf,
  createApplication,
  REVEAL_ALL,
  startTestPlanes,
  type TestApplication,
  type TestPlanes,
} from './planes.ts';

/** Holds a permission, so that its key is known, but not the one to read. */
const MAY_NOT_READ = { permissions: ['token:delete'] };

describe('the configuration cache in Redis', () => {
  let redis: TestRedis;
  let client: Redis;
  let planes: TestPlanes;
  let url: string;
  let tenant: TestTenant;
  let reader: TestApplication;

  before(async function () {
    redis = await startRedisOrSkip(this);
    client = new Redis(redis.url);
    planes = await startTestPlanes({ REDIS_URL: redis.url });
    url = planes.urls[0] ?? '';
    tenant = await planes.addTenant('Acme');
    reader = await createApplication(url, tenant);
    const json = { id: 'the-secret', type: 'token', data: 'a secret' };
    await call(url, 'POST /tokens', { key: reader.key, json });
  });
  after(async () => {
    client?.disconnect();
    await planes?.stop();
    await redis?.stop();
  });

  const read = (baseUrl: string, { key }: TestApplication) =>
    call(baseUrl, 'GET /tokens/the-secret', { key });

  /** The name under which an application's entry lies. */
  async function entryOf({ id }: TestApplication, owner = tenant): Promise<string> {
    const { rows } = await planes.admin.query<{ hash: string }>(
      `SELECT encode(hash, 'hex') AS hash FROM key_directory WHERE tenant_id = $1 AND id = $2`,
      [owner.id, id],
    );
    const names = await client.keys(`*${rows[0]?.hash}*`);
    expect(names).to.have.lengthOf(1);
    return names[0] ?? '';
  }

  it('holds an entry of each application, bound to its tenant, for a bounded time', async () => {
    const name = await entryOf(reader);
    expect(name).to.match(/^sallyport:\{[0-9a-f-]{36}\}:application:[0-9a-f]{64}$/);
    expect(name).to.contain(tenant.id);
    expect(await client.ttl(name)).to.be.within(1, 86_400);
  });

  it('shows neither names, rules nor keys', async () => {
    const names = await client.keys('*');
    expect(names).to.include(await entryOf(reader));
    const values = await Promise.all(names.map((name) => client.getBuffer(name)));
    const everything = Buffer.concat([
      Buffer.from(names.join()),
      ...values.map((v) => v ?? Buffer.alloc(0)),
    ]);
    for (const word of [reader.key, 'reveal', 'token:', 'private', 'Tokens', 'priority']) {
      expect(everything.includes(word), word).to.equal(false);
    }
  });

  it('is read by data planes that know nothing yet', async () => {
    const fresh = await planes.addDataPlane();
    const before = await counterOf(planes, 'sallyport_redis_lookups_total');
    expect((await read(fresh, reader)).status).to.equal(200);
    expect(await counterOf(planes, 'sallyport_redis_lookups_total')).to.be.greaterThan(before);
  });

  it('is not believed when its values were forged, moved or replayed', async () => {
    const globex = await planes.addTenant('Globex');
    const stranger = await createApplication(url, globex);
    const forged = async (): Promise<Buffer> => {
      const { rows } = await planes.admin.query<{ config_version: string }>(
        'SELECT config_version FROM tenants WHERE id = $1',
        [tenant.id],
      );
      const entry: Partial<ApplicationEntry> = {
        ...{ tenant_id: tenant.id, application_id: reader.id, type: 'private', permissions: [] },
        ...{ rules: REVEAL_ALL, expires_at_ms: null, settings: {}, ...rows[0] },
      };
      return Buffer.from(JSON.stringify(entry));
    };
    const bytesOf = async (name: string) => (await client.getBuffer(name)) ?? Buffer.alloc(0);
    const own = await bytesOf(await entryOf(reader));
    const foreign = await bytesOf(await entryOf(stranger, globex));
    const attacks: Record<string, () => Buffer | Promise<Buffer>> = {
      'an entry in clear': forged,
      'the entry of another application': () => own,
      'the entry of another tenant': () => foreign,
      'random bytes': () => Buffer.from(crypto.getRandomValues(new Uint8Array(400))),
      'no bytes': () => Buffer.alloc(0),
      'a changed entry': () => Buffer.from(own.map((byte, index) => byte ^ (index === 50 ? 1 : 0))),
    };
    const attacked: [string, TestApplication][] = [];
    for (const what of Object.keys(attacks)) {
      attacked.push([what, await createApplication(url, tenant, MAY_NOT_READ)]);
    }
    const narrowed = await createApplication(url, tenant);
    const before = await bytesOf(await entryOf(narrowed));
    const json = { name: 'Narrowed', ...MAY_NOT_READ };
    await call(url, `PUT /applications/${narrowed.id}`, { key: tenant.managementKey, json });
    await client.set(await entryOf(narrowed), before);
    for (const [what, application] of attacked) {
      await client.set(await entryOf(application), await (attacks[what] as () => Buffer)());
    }
    const fresh = await planes.addDataPlane();
    for (const [what, application] of [...attacked, ['a replay', narrowed] as const]) {
      expect((await read(fresh, application)).status, what).to.equal(403);
    }
    expect((await read(fresh, reader)).status).to.equal(200);
  });

  it('does not bring a revoked key back by restoring its entry', async () => {
    const revoked = await createApplication(url, tenant);
    const name = await entryOf(revoked);
    const value = (await client.getBuffer(name)) ?? Buffer.alloc(0);
    await call(url, `DELETE /applications/${revoked.id}`, { key: tenant.managementKey });
    await client.set(name, value);
    const fresh = await planes.addDataPlane();
    for (const plane of [url, fresh]) expect((await read(plane, revoked)).status).to.equal(401);
  });

  it('may tell any lies about changes: nobody gains or loses a right by them', async () => {
    const limited = await createApplication(url, tenant, MAY_NOT_READ);
    await Promise.all([read(url, reader), read(url, limited)]);
    const lie = (over: object): string =>
      JSON.stringify({ tenant_id: tenant.id, version: crypto.randomUUID(), entities: [], ...over });
    const lies = [
      ...['', 'null', '[]', '{', '{"tenant_id":1}', 'x'.repeat(100_000)],
      ...[lie({}), lie({ version: 'not a version' }), lie({ tenant_id: 'nobody' })],
      lie({ entities: [{ kind: 'application', id: reader.id }, null, 1] }),
    ];
    for (const text of lies) {
      expect(await client.publish(NOTICE_CHANNEL, text)).to.be.greaterThan(0);
      await planes.admin.query('SELECT pg_notify($1, $2)', [NOTICE_CHANNEL, text.slice(0, 7_000)]);
      const answers = await Promise.all([read(url, reader), read(url, limited)]);
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 403]);
    }
    expect(planes.dataPlanes.every((plane) => plane.isAlive())).to.equal(true);
  });
});
