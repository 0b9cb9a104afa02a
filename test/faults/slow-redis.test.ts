/**
 * A Redis that answers after half a second (faults F-12). What is promised of it is `docs/faults.md`'s:
 * 100 ms once a second. That no request fails meanwhile, and that what was revoked stays revoked, is in
 * `security/revocation`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createLogger } from '../../shared/observability/logger.ts';
import { createRedisStore, type RedisStore } from '../../shared/redis/redis-store.ts';
import { startRedisOrSkip, type TestRedis } from '../support/redis.ts';
import { type SlowRelay, startSlowRelay } from '../support/slow-relay.ts';

/** Five times what a call may cost. */
const SLOW_MS = 500;
/** After a failure nothing is asked for as long. */
const PAUSE_MS = 1_000;
const [FIRST, SECOND] = [Buffer.from('first'), Buffer.from('second')];

describe('a Redis that is slow', () => {
  let redis: TestRedis;
  let relay: SlowRelay;
  let store: RedisStore;
  before(async function () {
    redis = await startRedisOrSkip(this);
  });
  after(() => redis?.stop());
  beforeEach(async () => {
    relay = await startSlowRelay(redis.url);
    store = createRedisStore(relay.url, createLogger('test', 'silent'));
    await store.set('first', FIRST, 60);
    await kept('first', FIRST);
    await kept('second', SECOND);
  });
  afterEach(async () => {
    store?.close();
    await relay?.close();
  });

  /** It has been asked before it was connected: it takes a while until it is asked again. */
  async function kept(key: string, value: Buffer): Promise<void> {
    while ((await store.get(key)) === undefined) {
      await store.set(key, value, 60);
      await delay(10);
    }
  }

  it('is not waited for: the caller goes on before the answer comes', async () => {
    relay.delayAnswers(SLOW_MS);
    const [asked, answered] = [relay.asked(), relay.answered()];
    expect(await store.get('first')).to.equal(undefined);
    expect([relay.asked(), relay.answered()]).to.deep.equal([asked + 1, answered]);
  });

  it('is asked once a second, whatever is wanted of it', async () => {
    relay.delayAnswers(SLOW_MS);
    const before = relay.asked();
    const began = performance.now();
    let wanted = 0;
    while (relay.asked() < before + 3) {
      expect(await store.get('first')).to.equal(undefined);
      await store.set('first', SECOND, 60);
      wanted += 2;
      await new Promise(setImmediate);
    }
    const pauses = relay.asked() - before - 1;
    expect(performance.now() - began).to.be.at.least(pauses * PAUSE_MS);
    expect(wanted).to.be.greaterThan(100);
  });

  it('gives its late answer to nobody who asked for something else', async () => {
    relay.delayAnswers(SLOW_MS);
    expect(await store.get('first')).to.equal(undefined);
    relay.delayAnswers(0);
    let found = await store.get('second');
    for (; found === undefined; found = await store.get('second')) await delay(10);
    expect(String(found)).to.equal(String(SECOND));
  });
});
