/** A gateway that stands still for seconds: what its hosts said meanwhile is heard before they are judged. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';

const COMPUTES = `module.exports = () => {
  for (const end = Date.now() + 300; Date.now() < end; ); return 'done'; };`;
const WAITS = `module.exports = () => new Promise((resolve) => setTimeout(() => resolve('done'), 6_500));`;
/** Longer than the deadline of what computes, and than a host with work may be silent. */
const STALL_MS = 5_600;

/** Behind what is in the pipes, so that the next timers come before it is heard. */
function standStill(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => {
      for (const end = performance.now() + STALL_MS; performance.now() < end; );
      resolve();
    });
  });
}

describe('a gateway that stood still', function () {
  this.timeout(60_000);
  let sandbox: Sandbox;
  const lost: string[] = [];
  before(async () => {
    sandbox = await startSandbox({ onHostLost: (reason) => lost.push(reason) });
  });
  after(() => sandbox?.supervisor.close());

  it('loses no host, and no run that ended in time or waits', async () => {
    const waiting = sandbox.value(WAITS, { tenant_id: 'waits', deadline_ms: 30_000 });
    await delay(500);
    const computing = sandbox.value(COMPUTES, { tenant_id: 'computes', deadline_ms: 5_000 });
    await delay(100);
    await standStill();
    expect([await computing, await waiting]).to.deep.equal(['done', 'done']);
    expect(lost).to.deep.equal([]);
  });
});
