import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { placeTenant } from '../../../shared/sandbox/placement.ts';
import { Quarantine } from '../../../shared/sandbox/quarantine.ts';
import { TenantShares } from '../../../shared/sandbox/tenant-shares.ts';

const REFUSED = ['tenant', 'machine'];

describe('the share of a tenant', () => {
  const limits = {
    ...{ tenant_running_max: 2, tenant_started_max: 3, tenant_waiting_max: 1, machine_max: 4 },
  };

  it('lets a run start, then wait, then refuses it', async () => {
    const shares = new TenantShares(limits);
    expect(shares.acquire('a')).to.equal('started');
    expect(shares.acquire('a')).to.equal('started');
    let started = false;
    const third = shares.acquire('a');
    if (typeof third === 'string') throw new Error(third);
    const waiting = third.then(() => {
      started = true;
    });
    expect(shares.acquire('a')).to.equal('tenant');
    await Promise.resolve();
    expect(started).to.equal(false);
    shares.release('a');
    await waiting;
    expect(started).to.equal(true);
  });

  it('is refused for all when the machine is full, and free again after', () => {
    const shares = new TenantShares(limits);
    for (const tenant of ['a', 'a', 'b', 'b']) shares.acquire(tenant);
    expect(shares.acquire('c')).to.equal('machine');
    shares.release('a');
    expect(shares.acquire('c')).to.equal('started');
    for (const tenant of ['a', 'b', 'b', 'c']) shares.release(tenant);
    for (const tenant of ['x', 'x', 'y', 'y']) expect(shares.acquire(tenant)).to.equal('started');
  });

  it('is bounded in bytes too, waiting runs included, for a tenant and for all', () => {
    const shares = new TenantShares({
      ...{ tenant_running_max: 1, tenant_bytes_max: 10, machine_bytes_max: 15 },
    });
    expect(shares.acquire('a', false, 11)).to.equal('tenant');
    for (const bytes of [6, 4]) {
      expect(shares.acquire('a', false, bytes)).not.to.be.oneOf(REFUSED);
    }
    expect(shares.acquire('a', false, 1)).to.equal('tenant');
    expect(shares.acquire('a', true, 1), 'nested').to.equal('tenant');
    expect(shares.acquire('a', false, 0)).not.to.be.oneOf(REFUSED);
    expect(shares.acquire('b', false, 6)).to.equal('machine');
    expect(shares.acquire('b', false, 5)).to.equal('started');
    shares.release('a', false, 6);
    expect(shares.acquire('a', false, 7)).to.equal('tenant');
    expect(shares.acquire('a', false, 6)).not.to.be.oneOf(REFUSED);
    expect(shares.acquire('b', false, 1)).to.equal('machine');
    for (const bytes of [4, 0, 6]) shares.release('a', false, bytes);
    expect(shares.acquire('c', false, 10)).to.equal('started');
  });
});

describe('the share of a tenant whose runs wait for answers', () => {
  const limits = {
    ...{ tenant_running_max: 1, tenant_started_max: 2, tenant_waiting_max: 9, machine_max: 99 },
  };
  const started: string[] = [];
  const ask = (shares: TenantShares, name: string, nested = false): string => {
    const admitted = shares.acquire('a', nested);
    if (admitted === 'started') {
      started.push(name);
      return 'admitted';
    }
    if (typeof admitted === 'string') return admitted;
    void admitted.then(() => started.push(name));
    return 'admitted';
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  beforeEach(() => {
    started.length = 0;
  });

  it('is for others meanwhile, but never more than may have started', async () => {
    const shares = new TenantShares(limits);
    for (const name of ['1', '2', '3']) ask(shares, name);
    await turn();
    expect(started).to.deep.equal(['1']);
    shares.park('a');
    await turn();
    expect(started).to.deep.equal(['1', '2']);
    shares.park('a');
    await turn();
    expect(started).to.deep.equal(['1', '2']);
    shares.release('a', true);
    await turn();
    expect(started).to.deep.equal(['1', '2', '3']);
  });

  it('lets a run go on whose answer has come, and starts none until there is room again', async () => {
    const shares = new TenantShares(limits);
    for (const name of ['1', '2', '3']) ask(shares, name);
    shares.park('a');
    shares.unpark('a');
    shares.release('a');
    await turn();
    expect(started).to.deep.equal(['1', '2']);
    shares.release('a');
    await turn();
    expect(started).to.deep.equal(['1', '2', '3']);
  });

  it('has room for a run that another waits for, until there are too many of those', async () => {
    const shares = new TenantShares(limits);
    for (const name of ['1', '2', '3']) ask(shares, name);
    shares.park('a');
    shares.park('a');
    await turn();
    for (const name of ['1.1', '2.1']) ask(shares, name, true);
    await turn();
    expect(started).to.deep.equal(['1', '2', '1.1']);
    shares.park('a');
    await turn();
    expect(started).to.deep.equal(['1', '2', '1.1', '2.1']);
    expect(ask(shares, '1.1.1', true)).to.equal('tenant');
    for (const parked of [false, true, true, true]) shares.release('a', parked);
    await turn();
    expect(started.at(-1)).to.equal('3');
  });
});

describe('the place of a tenant', () => {
  it('moves only the tenants of the slot that went', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.integer({ min: 2, max: 8 }),
        fc.nat({ max: 7 }),
        (tenant, count, gone) => {
          const slots = Array.from({ length: count }, (_item, slot) => slot);
          const before = placeTenant(tenant, slots);
          const after = placeTenant(
            tenant,
            slots.filter((slot) => slot !== gone),
          );
          if (before !== gone) expect(after).to.equal(before);
          else expect(after).not.to.equal(gone);
        },
      ),
    );
    expect(placeTenant('a', [])).to.equal(undefined);
  });

  it('spreads tenants over all slots', () => {
    const used = new Set(
      Array.from({ length: 64 }, (_item, tenant) => placeTenant(`${tenant}`, [0, 1, 2])),
    );
    expect([...used].sort()).to.deep.equal([0, 1, 2]);
  });
});

describe('the quarantine', () => {
  it('runs one at a time, tenants in turn, and bounds what a tenant may leave waiting', () => {
    const started: string[] = [];
    const quarantine = new Quarantine<{ tenant_id: string; script_key: string }>((run) =>
      started.push(run.tenant_id),
    );
    const runs = Array.from({ length: 9 }, () => ({ tenant_id: 'a', script_key: 'a/1' }));
    for (const run of runs) expect(quarantine.enter(run)).to.equal(true);
    expect(quarantine.enter({ tenant_id: 'a', script_key: 'a/1' })).to.equal(false);
    expect(quarantine.enter({ tenant_id: 'b', script_key: 'b/1' })).to.equal(true);
    expect(started).to.deep.equal(['a']);
    quarantine.leave(runs[0] as (typeof runs)[0], false);
    quarantine.leave(runs[1] as (typeof runs)[0], false);
    expect(started).to.deep.equal(['a', 'a', 'b']);
  });

  it('gives others a turn beside runs that stay, whatever of their tenant waits as well', async () => {
    const started: string[] = [];
    const quarantine = new Quarantine<{ tenant_id: string; script_key: string }>((run) =>
      started.push(run.tenant_id),
    );
    const staying = Array.from({ length: 6 }, () => ({ tenant_id: 'a', script_key: 'a/1' }));
    for (const run of staying) quarantine.enter(run);
    const [first] = staying;
    if (first === undefined) throw new Error('nobody stays');
    expect(quarantine.isAlone(first)).to.equal(true);
    while (started.length < 2) await delay(10);
    expect(quarantine.has(first) && !quarantine.isAlone(first)).to.equal(true);
    const other = { tenant_id: 'b', script_key: 'b/1' };
    quarantine.enter(other);
    // In its turn, and no third of the tenant before it.
    while (!quarantine.has(other)) await delay(10);
    quarantine.leave(other, true);
    expect(started).to.deep.equal(['a', 'a', 'b']);
    quarantine.leave(first, true);
    expect(started).to.deep.equal(['a', 'a', 'b', 'a']);
    for (const run of staying) quarantine.leave(run, true);
  });

  it('adds suspicions of a tenant up, and takes back those of runs that then ended well', () => {
    const quarantine = new Quarantine<{ tenant_id: string; script_key: string }>(() => undefined);
    const runs = Array.from({ length: 6 }, (_item, index) => ({
      ...{ tenant_id: 'a', script_key: `a/${index}` },
    }));
    const other = { tenant_id: 'a', script_key: 'a/other' };
    for (const run of runs) {
      expect(quarantine.holds(other, false)).to.equal(false);
      quarantine.doubt(run);
    }
    expect(quarantine.holds(other, false)).to.equal(true);
    for (const run of runs.slice(0, 1)) quarantine.leave(run, true);
    expect(quarantine.holds(other, false)).to.equal(false);
    quarantine.suspect(other)();
    expect(quarantine.holds(other, false)).to.equal(false);
    quarantine.suspect({ tenant_id: 'a', script_key: 'a/new' });
    expect(quarantine.holds(other, false)).to.equal(true);
  });

  it('lets a script go after it has behaved, not before', () => {
    const quarantine = new Quarantine<{ tenant_id: string; script_key: string }>(() => undefined);
    const run = { tenant_id: 'a', script_key: 'a/1' };
    quarantine.convict(run);
    let runs = 0;
    for (; quarantine.holds(run, false) && runs < 100; runs += 1) {
      quarantine.enter(run);
      quarantine.leave(run, true);
    }
    expect(runs).to.equal(20);
    quarantine.convict(run);
    quarantine.enter(run);
    quarantine.leave(run, false);
    expect(quarantine.holds(run, false)).to.equal(true);
  });

  it('holds a tenant as a whole whose scripts ended three hosts within a minute, or one without a spare', () => {
    let now_ms = 0;
    const quarantine = new Quarantine<{ tenant_id: string; script_key: string }>(
      () => undefined,
      () => now_ms,
    );
    const other = { tenant_id: 'a', script_key: 'a/good' };
    for (const round of [1, 2]) {
      for (const script of [1, 2]) {
        quarantine.convict({ tenant_id: 'a', script_key: `a/${round}.${script}` });
        now_ms += 10_000;
        expect(quarantine.holds(other, false), 'two in a minute').to.equal(false);
        expect(quarantine.holds(other, true), 'no spare host').to.equal(true);
      }
      now_ms += 60_000;
    }
    for (const script of [1, 2, 3]) {
      expect(quarantine.holds(other, false)).to.equal(false);
      quarantine.convict({ tenant_id: 'a', script_key: `a/3.${script}` });
    }
    expect(quarantine.holds(other, false)).to.equal(true);
    expect(quarantine.holds({ tenant_id: 'b', script_key: 'b/good' }, false)).to.equal(false);
    now_ms += 59_999;
    expect(quarantine.holds(other, false)).to.equal(true);
    now_ms += 1;
    expect(quarantine.holds(other, false)).to.equal(false);
  });

  it('does not hold a tenant whose scripts are only suspected', () => {
    const quarantine = new Quarantine<{ tenant_id: string; script_key: string }>(() => undefined);
    for (const script_key of ['a/1', 'a/2', 'a/3', 'a/4']) {
      quarantine.suspect({ tenant_id: 'a', script_key });
      expect(quarantine.holds({ tenant_id: 'a', script_key }, false)).to.equal(true);
    }
    expect(quarantine.holds({ tenant_id: 'a', script_key: 'a/5' }, true)).to.equal(false);
  });
});
