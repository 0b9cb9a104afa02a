/**
 * What a data plane keeps of its tenants' configuration: bounded, carried through changes that do not
 * concern it, and whatever happens meanwhile never at a version that it was not (design section 5).
 */
import { expect } from 'chai';
import type { EntryCache } from '../../../data-plane/config-cache/entry-cache.ts';
import { createEntryStore, entryBytes } from '../../../data-plane/config-cache/entry-store.ts';
import type { Pool } from '../../../shared/postgres/pool.ts';
import { createTestPool, type TestPool } from '../../support/postgres.ts';
import { TenantHistory, type TestEntry } from './tenant-history.ts';

const THINGS = Array.from({ length: 500 }, (_, index) => `thing-${index}`);

describe('the memory of a configuration cache', () => {
  const entry = (slot: string, bytes: number) => ({
    ...{ tenant_id: 'tenant', config_version: 'v', slot, bytes },
  });
  const store = () =>
    createEntryStore<ReturnType<typeof entry>>({
      ...{ entries_max: 10, bytes_max: 100, bytesOf: ({ bytes }) => bytes },
    });
  const slots = (of: ReturnType<typeof store>): string[] =>
    of.entriesOf('tenant').map(({ slot }) => slot);

  it('is bounded by bytes, whatever the number of entries', () => {
    const entries = store();
    for (const slot of ['a', 'b', 'c']) entries.put(entry(slot, 30));
    entries.get('a');
    entries.put(entry('d', 30));
    expect(slots(entries)).to.deep.equal(['a', 'c', 'd']);
    entries.put(entry('a', 100));
    expect(slots(entries)).to.deep.equal(['a']);
  });

  it('does not keep what is larger than all of it, nor what that replaces', () => {
    const entries = store();
    entries.put(entry('a', 30));
    entries.put(entry('a', 101));
    expect([slots(entries), entries.get('a')]).to.deep.equal([[], undefined]);
  });

  it('is bounded by the number of entries, however small', () => {
    const entries = store();
    for (let count = 0; count < 20; count += 1) entries.put(entry(`${count}`, 1));
    expect(slots(entries)).to.have.length(10);
  });

  it('is not used by carrying an entry: the least used leave first', () => {
    const entries = store();
    const first = entry('a', 40);
    entries.put(first);
    entries.put(entry('b', 40));
    entries.carry(first, 'w');
    entries.put(entry('c', 40));
    expect(slots(entries)).to.deep.equal(['b', 'c']);
  });

  it('counts texts, bytes, and a fixed cost', () => {
    expect(entryBytes('abc', Buffer.alloc(7), null, undefined) - entryBytes()).to.equal(13);
    expect(entryBytes()).to.equal(1_024);
  });
});

describe('a configuration cache through changes', () => {
  let database: TestPool;
  let pool: Pool;
  let tenant: TenantHistory;
  let cache: EntryCache<TestEntry>;
  before(async () => {
    database = await createTestPool(4);
    pool = database.pool;
  });
  after(() => database?.drop());
  beforeEach(async () => {
    tenant = new TenantHistory(pool);
    await tenant.begin();
    cache = tenant.cache();
    for (const thing of THINGS) await load(thing);
    tenant.asked.length = 0;
  });
  afterEach(() => {
    expect(tenant.failures).to.deep.equal([]);
  });

  const slotOf = (thing: string): string => `${tenant.id}/${thing}`;
  const cached = (thing: string) => cache.cached(slotOf(thing));
  const load = (thing: string) => cache.load(slotOf(thing), () => tenant.read(thing));
  const versions = (): Set<string | undefined> =>
    new Set(THINGS.map((thing) => cached(thing)?.config_version));
  const notice = (version: string): void => cache.warm({ tenant_id: tenant.id, version });
  /** Tells the cache, and waits until it is done. */
  const tell = async (version: string): Promise<void> => {
    notice(version);
    await tenant.quiet();
  };

  it('carries what a change does not concern, in two statements, and reads nothing', async () => {
    const version = await tenant.change('thing-7');
    await tell(version);
    expect(tenant.asked).to.deep.equal(['read-config-versions', 'config-changes-between']);
    expect(cached('thing-7')).to.equal(undefined);
    expect(versions()).to.deep.equal(new Set([version, undefined]));
    expect((await load('thing-7'))?.state).to.equal(1);
    expect(versions()).to.deep.equal(new Set([version]));
  });

  it('drops what a change may concern, however much that is, and reads it when asked', async () => {
    await tell(await tenant.change('everything'));
    expect(tenant.asked).to.deep.equal(['read-config-versions', 'config-changes-between']);
    expect(versions()).to.deep.equal(new Set([undefined]));
  });

  it('drops everything where the record of changes has a gap', async () => {
    const missed = await tenant.change('thing-7');
    const version = await tenant.change('thing-8');
    await tenant.loseChange(missed);
    await tell(version);
    expect(versions()).to.deep.equal(new Set([undefined]));
  });

  it('drops everything of a tenant that is gone', async () => {
    await pool.query('DELETE FROM tenants WHERE id = $1', [tenant.id]);
    await tell('whatever');
    expect(versions()).to.deep.equal(new Set([undefined]));
  });

  it('is not led astray by notices that are late or made up', async () => {
    const late = await tenant.change('thing-7');
    const version = await tenant.change('thing-8');
    await tell(version);
    const known = versions();
    for (const told of [late, 'not a version', crypto.randomUUID()]) await tell(told);
    expect(versions()).to.deep.equal(known);
    expect(known).to.deep.equal(new Set([version, undefined]));
  });

  it('takes a burst of notices as one or two', async () => {
    const changes: string[] = [];
    for (let count = 0; count < 20; count += 1) changes.push(await tenant.change('thing-1'));
    for (const version of changes) notice(version);
    await tell(changes.at(-1) ?? '');
    expect(tenant.asked.length).to.be.at.most(4);
    expect(versions()).to.deep.equal(new Set([changes.at(-1), undefined]));
  });

  it('leaves alone what was read anew meanwhile', async () => {
    const walk = tenant.changesBetween();
    const begun = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    let walks = 0;
    cache = tenant.cache({
      async changesBetween(...asked) {
        walks += 1;
        // The first walk is that of the notice.
        if (walks === 1) {
          begun.resolve();
          await held.promise;
        }
        return walk(...asked);
      },
    });
    const stale = await load('thing-7');
    const version = await tenant.change('thing-7');
    notice(version);
    await begun.promise;
    const fresh = stale && (await cache.refresh(stale, version));
    held.resolve();
    await tenant.quiet();
    expect(fresh?.state).to.equal(1);
    expect(cached('thing-7')).to.equal(fresh);
  });

  it('holds at its version what was true then, whatever happens at once', async () => {
    const some = THINGS.slice(0, 12);
    let seed = 20261120;
    const random = (below: number): number => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return Math.floor((seed / 2147483648) * below);
    };
    const pick = (): string => some[random(some.length)] ?? '';
    const known: string[] = [...tenant.at.keys()];
    const check = (entry: TestEntry | undefined): void => {
      if (entry === undefined) return;
      const truth = tenant.at.get(entry.config_version)?.[entry.thing] ?? 0;
      expect(entry.state, `${entry.thing} at ${entry.config_version}`).to.equal(truth);
    };
    const steps: (() => Promise<unknown>)[] = [
      async () => known.push(await tenant.change(...new Set([pick(), pick()]))),
      async () => notice(known[random(known.length)] ?? ''),
      async () => check(await load(pick())),
      async () => {
        const entry = cached(pick());
        check(entry && (await cache.refresh(entry, await tenant.version())));
      },
      async () => random(10) === 0 && tenant.loseChange(known[random(known.length)] ?? ''),
    ];
    for (let round = 0; round < 60; round += 1) {
      const atOnce = Array.from({ length: 8 }, () => steps[random(steps.length)]?.());
      await Promise.all(atOnce);
      for (const thing of some) check(cached(thing));
    }
    await tell('the last');
    for (const thing of some) check(cached(thing));
  });
});
