/**
 * Sixteen clients write and read while one fault after another hits the installation. Afterwards, what
 * they were told must be true. `FAULTS_SECONDS` (60) and `FAULTS_SEED` repeat a run as far as timing lets.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { call } from '../../support/http-call.ts';
import { Random } from '../../support/random.ts';
import { checkHistory } from './check-history.ts';
import { Client } from './client.ts';
import { FAULTS } from './faults.ts';
import { Ledger } from './ledger.ts';
import { createWorld, type World } from './world.ts';

const CLIENTS = 16;
const PAUSE_MS_MIN = 2_000;
const PAUSE_MS_MAX = 5_000;
const RECOVERY_MS = 30_000;
const SECONDS = Number(process.env.FAULTS_SECONDS ?? 60);
const SEED = Number(process.env.FAULTS_SEED ?? Date.now() % 1_000_000);

describe(`history of ${SECONDS} s, FAULTS_SEED=${SEED}`, function () {
  this.timeout((SECONDS + 240) * 1000);
  let world: World;

  before(async () => {
    world = await createWorld();
  });
  after(() => world?.stop());

  it('keeps every promise while processes die', async () => {
    const ledger = new Ledger();
    const random = new Random(SEED);
    const end = performance.now() + SECONDS * 1000;
    const isOver = (): boolean => performance.now() > end;
    const clients = Array.from({ length: CLIENTS }, (_, index) => {
      const tenant = world.tenants[index % world.tenants.length];
      if (tenant === undefined) throw new Error('no tenant');
      return new Client(world, tenant, ledger, new Random(SEED + index)).run(isOver);
    });
    const struck = await strike(random, isOver);
    await Promise.all(clients);
    await recovered();
    await checkHistory(world, ledger);
    report(ledger, struck);
    expect(struck.length).to.be.greaterThan(SECONDS / 10);
    expect(ledger.tokens.size).to.be.greaterThan(SECONDS);
    expect(ledger.violations.slice(0, 20).join('\n')).to.equal('');
  });

  /** One fault every few seconds; returns their names. */
  async function strike(random: Random, isOver: () => boolean): Promise<string[]> {
    const struck: string[] = [];
    const beganAt = performance.now();
    while (!isOver()) {
      await delay(PAUSE_MS_MIN + random.below(PAUSE_MS_MAX - PAUSE_MS_MIN));
      const fault = random.pick(FAULTS);
      struck.push(`${Math.round(performance.now() - beganAt)} ms ${fault.name}`);
      await fault.strike(world);
    }
    world.answers.drop(0);
    return struck;
  }

  /** Until each plane has served every tenant some times in a row. */
  async function recovered(): Promise<void> {
    const deadline = performance.now() + RECOVERY_MS;
    for (let inARow = 0; inARow < 20; ) {
      if (performance.now() > deadline)
        throw new Error(`not up again: ${world.output().slice(-2000)}`);
      const answers = await Promise.all(
        world.tenants.map(({ key }) =>
          call(world.baseUrl, 'GET /tokens?size=1', { key }).catch(() => ({ status: 0 })),
        ),
      );
      inARow = answers.every(({ status }) => status === 200) ? inARow + 1 : 0;
      await delay(50);
    }
  }

  function report(ledger: Ledger, struck: readonly string[]): void {
    const { ops, unknown, undone, tokens, statuses } = ledger;
    const lost = world.answers.dropped();
    process.stdout.write(
      `\n${ops} operations, ${tokens.size} tokens acknowledged, ${unknown.size} ends unknown, ` +
        `${undone.size} undone, ${struck.length} faults, ${lost} answers lost\n` +
        `${struck.join('; ')}\n` +
        `${[...statuses]
          .sort()
          .map(([name, count]) => `  ${name}: ${count}`)
          .join('\n')}\n`,
    );
  }
});
