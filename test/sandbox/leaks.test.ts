/** A host after thousands of runs: nothing of a run that has ended may stay in it. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { ScriptService } from '../../shared/sandbox/script-services.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { skipUnlessLinux } from '../support/skip.ts';

const RUNS = 20_000;
/** Runs after which heaps have grown to what they need. */
const WARM_RUNS = 5_000;
const AT_ONCE = 100;
/** Garbage that waits for its collector. A context that stays is 0.3 MB: 15,000 of them are 4 GB. */
const GROWTH_MB_MAX = 192;

const SOURCES: readonly string[] = [
  'module.exports = async (req) => req.args.text.length;',
  "module.exports = () => { throw new Error('x'.repeat(500)); };",
  'module.exports = (req) => { setTimeout(() => req, 9e5); setInterval(() => req, 9e5); return 1; };',
  'module.exports = (req) => new Promise((resolve) => setTimeout(() => resolve(req), 1));',
  'module.exports = (req) => req.bt.detokenize(req.args);',
  'module.exports = (req) => { for (let i = 0; i < 9; i++) req.bt.detokenize(req.args); return 2; };',
  "module.exports = () => { for (let i = 0; i < 20; i++) console.log('x'.repeat(100)); };",
  `module.exports = (req) => { const ring = { req }; ring.ring = ring; globalThis.leaked = () => ring;
    Array.prototype.leaked = ring; setTimeout(() => ring, 9e5); return 3; };`,
  "module.exports = () => 'y'.repeat(50e3);",
  'module.exports = (req) => new Promise(() => req);',
];
const args = JSON.stringify({ text: 'z'.repeat(2_000) });

describe('a sandbox host', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox({ thread_count: 2, spares: false });
  });
  after(() => sandbox.supervisor.close());

  for (const reuse of [false, true]) {
    it(`${reuse ? 'that keeps contexts ' : ''}keeps its memory over 20,000 runs`, async function () {
      skipUnlessLinux(this, 'memory of a process is read from /proc');
      this.timeout(120_000);
      const [pid] = sandbox.supervisor.status().pids;
      let next = 0;
      let endings = 0;
      const work = async (until: number): Promise<void> => {
        while (next < until) {
          await runOne(sandbox, next++, reuse);
          endings += 1;
        }
      };
      const workers = (until: number) =>
        Promise.all(Array.from({ length: AT_ONCE }, () => work(until)));
      await workers(WARM_RUNS);
      const before_mb = residentMb(pid as number);
      await workers(RUNS);
      expect(endings).to.equal(RUNS);
      expect(sandbox.supervisor.status().pids, 'the host').to.deep.equal([pid]);
      expect(residentMb(pid as number) - before_mb).to.be.below(GROWTH_MB_MAX);
    });
  }
});

const bt: ScriptService = async () => '{"status":200,"body":{"a":1}}';

async function runOne({ supervisor }: Sandbox, index: number, reuse: boolean): Promise<void> {
  const source = SOURCES[index % SOURCES.length] as string;
  const tenant_id = `tenant ${reuse}`;
  const { result } = await supervisor.run({
    ...{ tenant_id, script_version: source, source, args, reuse, services: { bt } },
  });
  expect(result.kind).to.be.oneOf(['ok', 'error']);
}

function residentMb(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(text)?.[1]) / 1024;
}
