import { expect } from 'chai';
import fc from 'fast-check';
import { placeTenant } from '../../../shared/sandbox/placement.ts';
import { Quarantine } from '../../../shared/sandbox/quarantine.ts';
import { TenantShares } from '../../../shared/sandbox/tenant-shares.ts';

describe('the share of a tenant', () => {
  const limits = { tenant_running_max: 2, tenant_waiting_max: 1, machine_max: 4 };

  it('lets a run start, then wait, then refuses it', async () => {
    const shares = new TenantShares(limits);
    expect(typeof shares.acquire('a')).to.equal('object');
    expect(typeof shares.acquire('a')).to.equal('object');
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
    expect(typeof shares.acquire('c')).to.equal('object');
    for (const tenant of ['a', 'b', 'b', 'c']) shares.release(tenant);
    for (const tenant of ['x', 'x', 'y', 'y'])
      expect(typeof shares.acquire(tenant)).to.equal('object');
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

  it('lets a script go after it has behaved, not before', () => {
    const quarantine = new Quarantine<{ tenant_id: string; script_key: string }>(() => undefined);
    const run = { tenant_id: 'a', script_key: 'a/1' };
    quarantine.convict('a/1');
    let runs = 0;
    for (; quarantine.holds('a/1') && runs < 100; runs += 1) {
      quarantine.enter(run);
      quarantine.leave(run, true);
    }
    expect(runs).to.equal(20);
    quarantine.convict('a/1');
    quarantine.enter(run);
    quarantine.leave(run, false);
    expect(quarantine.holds('a/1')).to.equal(true);
  });
});
