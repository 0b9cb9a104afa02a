/** docs/metrics.md against the code: it names every metric of ours, its labels and what it says, and no other. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { runSweeps } from '../../../data-plane/run-sweeps.ts';
import { createAuditMetrics } from '../../../shared/observability/audit-metrics.ts';
import { createCallbackMetrics } from '../../../shared/observability/callback-metrics.ts';
import { createJobMetrics } from '../../../shared/observability/job-metrics.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { addProcessMetrics, createMetrics } from '../../../shared/observability/metrics.ts';
import { createProxyMetrics } from '../../../shared/observability/proxy-metrics.ts';
import { createReactionMetrics } from '../../../shared/observability/reaction-metrics.ts';
import { createTokenMetrics } from '../../../shared/observability/token-metrics.ts';
import { createPool } from '../../../shared/postgres/pool.ts';

interface Described {
  name: string;
  help: string;
  labelNames?: string[];
}

const DOCUMENT = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8');

/** Every metric that any process has, in one registry. */
async function allMetrics(): Promise<Described[]> {
  const log = createLogger('test', 'silent');
  const connectionString = 'postgres://127.0.0.1:1/none';
  const pool = createPool({ connectionString, max: 1, applicationName: 'test', log });
  const metrics = createMetrics({ version: 'test' }, pool);
  addProcessMetrics(metrics);
  createAuditMetrics(metrics);
  createCallbackMetrics(metrics);
  createJobMetrics(metrics);
  createProxyMetrics(metrics);
  createReactionMetrics(metrics, () => 0);
  createTokenMetrics(metrics);
  const signal = AbortSignal.abort();
  await runSweeps({ pool, metrics, log, signal, onExpired: () => undefined });
  await pool.end();
  return metrics.registry.getMetricsAsArray() as unknown as Described[];
}

describe('docs/metrics.md', () => {
  it('has every metric of ours with its labels and its help, and no other', async () => {
    const ours = (await allMetrics()).filter(({ name }) => name.startsWith('sallyport_'));
    const rows = ours.map(({ name, help, labelNames = [] }) => {
      const labels = labelNames.map((label) => `\`${label}\``).join(', ');
      return `| \`${name}\` | ${labels} | ${help} |`.replace('|  |', '| |');
    });
    const documented = DOCUMENT.split('\n').filter((line) => line.startsWith('| `sallyport_'));
    expect(documented).to.have.members(rows);
    expect(documented).to.have.lengthOf(rows.length);
  });
});
