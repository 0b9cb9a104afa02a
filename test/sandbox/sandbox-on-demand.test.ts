/** The sandbox of the job process: there while there is something to run, and not otherwise. */
import { expect } from 'chai';
import type { SandboxSettings } from '../../data-plane/reactors/sandbox.ts';
import { sandboxOnDemand } from '../../data-plane/reactors/sandbox-on-demand.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import { createMetrics } from '../../shared/observability/metrics.ts';
import { createReactionMetrics } from '../../shared/observability/reaction-metrics.ts';
import { findIsolation } from '../../shared/sandbox/host-command.ts';

const IDLE_MS = 300;
const REQUEST = {
  ...{ tenant_id: 'a', script_version: '1' },
  source: 'module.exports = async () => ({ raw: 42 });',
};

function open(sandboxHosts: number) {
  return openTold({ sandboxHosts }).sandbox;
}

/** And what it warns of. */
function openTold(own: Pick<SandboxSettings, 'sandboxHosts'> & Partial<SandboxSettings>) {
  const pool = { totalCount: 0, idleCount: 0, waitingCount: 0 };
  const metrics = createReactionMetrics(createMetrics({ version: 'test' }, pool), () => 0);
  const settings = {
    sandboxThreads: 2,
    sandboxReuse: 'invocation',
    sandboxStrict: false,
    ...own,
  } as const;
  const warnings: unknown[] = [];
  const warn = (...line: unknown[]): unknown => warnings.push(line.at(-1));
  const log = { ...createLogger('test', 'silent'), warn };
  return { sandbox: sandboxOnDemand(settings, metrics, log, IDLE_MS), warnings };
}

describe('a sandbox on demand', function () {
  this.timeout(30_000);

  it('starts hosts with the first run and ends them after the last, again and again', async () => {
    const sandbox = open(1);
    expect(sandbox?.status()).to.equal(undefined);
    for (let round = 0; round < 2; round += 1) {
      const runs = await Promise.all([sandbox?.run(REQUEST), sandbox?.run(REQUEST)]);
      expect(runs.map((run) => run?.result.kind)).to.deep.equal(['ok', 'ok']);
      expect(sandbox?.status()?.hosts).to.be.greaterThan(0);
      while (sandbox?.status() !== undefined) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
    await sandbox?.close();
  });

  it('does not end hosts under a run that takes longer than they may be idle', async () => {
    const sandbox = open(1);
    const wait = `await new Promise((resolve) => setTimeout(resolve, ${3 * IDLE_MS}));`;
    const source = `module.exports = async () => { ${wait} return { raw: 1 }; };`;
    await sandbox?.run(REQUEST);
    const run = await sandbox?.run({ ...REQUEST, script_version: '2', source });
    expect(run?.result.kind).to.equal('ok');
    await sandbox?.close();
    expect(sandbox?.status()).to.equal(undefined);
  });

  it('says that nothing was run while its hosts cannot be started, and goes on when they can', async () => {
    const sandbox = open(1);
    const { execPath } = process;
    process.execPath = '/nonexistent';
    try {
      const runs = await Promise.all([sandbox?.run(REQUEST), sandbox?.run(REQUEST)]);
      expect(runs.map((run) => run?.result.kind)).to.deep.equal(['busy', 'busy']);
    } finally {
      process.execPath = execPath;
    }
    expect((await sandbox?.run(REQUEST))?.result.kind).to.equal('ok');
    await sandbox?.close();
  });

  it('is none where there shall be no hosts, and says so', () => {
    const { sandbox, warnings } = openTold({ sandboxHosts: 0 });
    expect(sandbox).to.equal(undefined);
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.match(/no asynchronous reactors .* SANDBOX_HOSTS/);
  });

  it('is none where hosts must be cut off and cannot be, and says so', () => {
    const { sandbox, warnings } = openTold({ sandboxHosts: 1, sandboxStrict: true });
    const isCutOff = findIsolation().network === 'none';
    expect(sandbox !== undefined).to.equal(isCutOff);
    expect(warnings).to.have.lengthOf(isCutOff ? 0 : 1);
    for (const warning of warnings) expect(warning).to.contain('SALLYPORT_SANDBOX_STRICT');
  });
});
