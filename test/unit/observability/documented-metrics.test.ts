/** docs/metrics.md against the code: it names every metric of ours, its labels and what it says, and no other. */
import { expect } from 'chai';
import { PROXY_OUTCOMES } from '../../../data-plane/proxy/proxy-outcome.ts';
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
import { read } from '../documented-limits.ts';

interface Described {
  name: string;
  help: string;
  labelNames?: string[];
}

const DOCUMENT = read('docs/metrics.md');

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

  it('says what each outcome of a proxied request is', () => {
    const item = DOCUMENT.split('\n- `sallyport_proxy_requests_total`:')[1]?.split('\n- ')[0] ?? '';
    const documented = Array.from(item.matchAll(/`(\w+)`/g), ([, name]) => name);
    expect(documented).to.have.members(PROXY_OUTCOMES);
  });

  it('says what a route is that is no path', () => {
    const [data, control] = [
      read('data-plane/server.ts'),
      read('control-plane/observe-requests.ts'),
    ];
    const named = Array.from(data.matchAll(/(?:measure|fail)\(.*'(\w+)'/g), ([, name]) => name);
    const unnamed = /operation\?\.path \?\? '(\w+)'/.exec(control)?.[1];
    const documented = Array.from(DOCUMENT.matchAll(/^- `(\w+)`: the /gm), ([, name]) => name);
    expect(documented).to.have.members([...new Set(named), unnamed]);
  });
});
