/** docs/faults.md against the code: a number or a test there that is not true any more fails here. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { LEASE_MS } from '../../shared/jobs/job-store.ts';
import { constantIn, count, read, seconds, tableBelow } from './documented-limits.ts';

const DOCUMENT = read('docs/faults.md');
const TESTS = join(import.meta.dirname, '..');

const inPlanes = (name: string): string => seconds(constantIn('embedded/plane-process.ts', name));
const inPool = (name: string): string => seconds(constantIn('shared/postgres/pool.ts', name));
const inRedis = (name: string): number => constantIn('shared/redis/redis-store.ts', name);

const PROMISES = [
  `a statement may take ${inPool('STATEMENT_TIMEOUT_MS')}, a lock ${inPool('LOCK_TIMEOUT_MS')}, ` +
    `a connection ${inPool('CONNECT_TIMEOUT_MS')}`,
  `503 after ${inPool('LOCK_TIMEOUT_MS')} for what needs it`,
  `each costs one request ${inPool('QUERY_TIMEOUT_MS')} and a 503`,
  `${inRedis('COMMAND_TIMEOUT_MS')} ms in each second`,
  `or waits ${seconds(constantIn('data-plane/relay.ts', 'TIMEOUT_MS'))} at most`,
  `when its lease ends (${seconds(LEASE_MS)})`,
  `after ${inPlanes('RESTART_MS_MIN')} (${inPlanes('RESTART_MS_MAX')} at most`,
  `${seconds(constantIn('shared/process/drain.ts', 'DRAIN_MS_MAX'))} at most`,
  `the queue holds ${count(constantIn('shared/audit/audit-queue.ts', 'QUEUE_ROWS_MAX'))} rows`,
];

describe('docs/faults.md', () => {
  for (const promise of PROMISES) {
    it(`says as the code does: ${promise}`, () => expect(DOCUMENT).to.contain(promise));
  }

  it('means a pause by "in each second"', () => {
    expect(inRedis('BREAKER_OPEN_MS')).to.equal(1_000);
  });

  it('names tests that there are', () => {
    const rows = tableBelow(DOCUMENT, 'The faults, and what they come to');
    const named = rows.flatMap(([, , tests = '']) =>
      Array.from(tests.matchAll(/`([\w/*-]+)`/g), ([, name = '']) => name),
    );
    expect(named.length).to.be.greaterThan(30);
    const missing = named.filter((name) => {
      const found = globSync([`${name}.test.ts`, `${name}/*.test.ts`], { cwd: TESTS });
      return found.length === 0;
    });
    expect(missing).to.deep.equal([]);
  });
});
