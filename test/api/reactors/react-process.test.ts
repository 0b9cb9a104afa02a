/** Reactors and the processes that run them: readiness, metrics, draining, the modes of the sandbox. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { Plane } from '../../../shared/process/serve-plane.ts';
import { call } from '../../support/http-call.ts';
import { type Reactors, startReactors } from './reactors.ts';

describe('a data plane with a sandbox', () => {
  let reactors: Reactors;
  before(async () => {
    reactors = await startReactors();
  });
  after(() => reactors?.stop());

  const metricOf = async ({ metrics }: Plane, line: string): Promise<number> => {
    const text = await metrics.registry.metrics();
    const found = text.split('\n').find((one) => one.startsWith(`${line} `));
    return Number(found?.slice(line.length + 1) ?? 0);
  };

  it('says what its hosts are', async () => {
    const { ready, problems, sandbox } = await reactors.plane.readiness();
    expect({ ready, problems }).to.deep.equal({ ready: true, problems: [] });
    // One for tenants, one spare.
    expect(sandbox?.hosts).to.equal(2);
    expect(sandbox?.network).to.be.oneOf(['none', 'shared']);
    expect(await metricOf(reactors.plane, 'sallyport_sandbox_hosts')).to.equal(2);
  });

  it('counts reactions by how they ended, and hosts that were lost', async () => {
    const outcomes: [string, string][] = [
      ['return {}', 'ok'],
      ["throw new Error('boom')", 'error'],
      [
        'const all = new Map(); for (let i = 0; ; i++) all.set(i, new Array(1e4).fill(i))',
        'memory',
      ],
    ];
    for (const [body, outcome] of outcomes) {
      const line = `sallyport_reactions_total{outcome="${outcome}"}`;
      const before = await metricOf(reactors.plane, line);
      const reactor = await reactors.script(body);
      await reactors.react(reactor);
      expect(await metricOf(reactors.plane, line), outcome).to.equal(before + 1);
    }
    const count = await metricOf(reactors.plane, 'sallyport_reaction_duration_seconds_count');
    expect(count).to.be.at.least(3);
    expect(await metricOf(reactors.plane, 'sallyport_reactions_in_flight')).to.equal(0);
    // Labels are from closed sets: nothing of a tenant is in them.
    const text = await reactors.plane.metrics.registry.metrics();
    expect(text).not.to.contain(reactors.control.tenant.id);
  }).timeout(60_000);

  it('gives every run a world of its own', async () => {
    const reactor = await reactors.script(
      'globalThis.runs = (globalThis.runs ?? 0) + 1; return { raw: runs }',
    );
    for (let run = 1; run <= 3; run += 1) {
      expect((await reactors.react(reactor)).body.raw).to.equal(1);
    }
  });
});

describe('a data plane whose reactors keep their contexts', () => {
  let reactors: Reactors;
  before(async () => {
    reactors = await startReactors({ SALLYPORT_SANDBOX_REUSE: 'reactor' });
  });
  after(() => reactors?.stop());

  it('shares them between runs of one reactor, and with no other of its formula', async () => {
    const code =
      'module.exports = () => { globalThis.runs = (globalThis.runs ?? 0) + 1; return { raw: runs } }';
    const one = await reactors.reactor({ formula: { code } });
    const json = { name: 'Other', formula: { id: one.formula_id }, configuration: {} };
    const other = await reactors.manage('POST /reactors', { json });
    const runs = async (id: string) => (await reactors.react({ id })).body.raw;
    expect([await runs(one.id), await runs(one.id)]).to.deep.equal([1, 2]);
    expect(await runs(String(other.body.id))).to.equal(1);
  });

  it('finishes what runs before it ends', async () => {
    const { key } = reactors;
    const slow = await reactors.script(
      'await new Promise((end) => setTimeout(end, 1_000)); return { raw: 1 }',
    );
    const running = reactors.react(slow);
    // Its run is counted before it begins; a turn of the event loop lets the request arrive.
    while (!(await metricsOf(reactors.plane)).includes('sallyport_reactions_in_flight 1')) {
      await delay(5);
    }
    const stopped = reactors.stopPlane();
    expect((await running).body).to.deep.equal({ raw: 1 });
    await stopped;
    const refused = await call(reactors.url, 'GET /tokens', { key }).catch(() => 'nobody');
    expect(refused).to.equal('nobody');
  });
});

describe('a data plane without a sandbox', () => {
  it('serves tokens, and refuses reactors', async () => {
    const reactors = await startReactors({ SANDBOX_HOSTS: '0' });
    try {
      const { ready, sandbox } = await reactors.plane.readiness();
      expect([ready, sandbox]).to.deep.equal([true, undefined]);
      await reactors.token({ type: 'token', data: 'x' });
      const answer = await reactors.react(await reactors.script('return {}'));
      expect(answer.status).to.equal(503);
    } finally {
      await reactors.stop();
    }
  });
});

const metricsOf = ({ metrics }: Plane): Promise<string> => metrics.registry.metrics();
