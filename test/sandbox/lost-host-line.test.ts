/** What the log says of a sandbox host that was lost: a killer outside of Sallyport can be recognised. */
import { expect } from 'chai';
import { startSandbox } from '../../data-plane/reactors/sandbox.ts';
import { createLogger, type Logger } from '../../shared/observability/logger.ts';
import { createMetrics } from '../../shared/observability/metrics.ts';
import { createReactionMetrics } from '../../shared/observability/reaction-metrics.ts';
import { childrenOf } from '../support/process-tree.ts';
import { startSandbox as startSupervised } from '../support/sandbox.ts';
import { skipUnlessLinux } from '../support/skip.ts';

const SETTINGS = {
  ...{ sandboxHosts: 1, sandboxThreads: 1, sandboxStrict: false },
  sandboxReuse: 'invocation',
} as const;

describe('the line of a lost sandbox host', function () {
  this.timeout(30_000);

  before(function () {
    skipUnlessLinux(this, 'hosts are found in /proc');
  });

  for (const signal of ['SIGKILL', 'SIGSEGV'] as const) {
    it(`says that it ended with ${signal}`, async () => {
      const pool = { totalCount: 0, idleCount: 0, waitingCount: 0 };
      const metrics = createReactionMetrics(createMetrics({ version: 'test' }, pool), () => 0);
      const { promise: lost, resolve } = Promise.withResolvers<string>();
      const warn = ((line: string) => line.includes('lost') && resolve(line)) as Logger['warn'];
      const before = new Set(await childrenOf(process.pid));
      const log = { ...createLogger('test', 'silent'), warn };
      const sandbox = startSandbox(SETTINGS, metrics, log);
      await sandbox?.ready;
      const host = (await childrenOf(process.pid)).find((pid) => !before.has(pid));
      process.kill(host as number, signal);
      expect(await lost).to.equal(`a sandbox host was lost and is replaced: ended with ${signal}`);
      await sandbox?.close();
    });
  }

  it('says no signal of one that was ended for what it did', async () => {
    const { promise: lost, resolve } = Promise.withResolvers<unknown[]>();
    const onHostLost = (...loss: unknown[]): void => resolve(loss);
    await using sandbox = await startSupervised({ rss_bytes_max: 1, onHostLost });
    const source = 'module.exports = async () => { for (;;); };';
    const running = sandbox.run(source, { deadline_ms: 1_000 });
    expect(await lost).to.deep.equal(['memory', undefined]);
    await running;
  });
});
