/**
 * `npm run bench`: every claim, or those named as arguments, one after another on one embedded
 * Postgres. Ends with 1 when a figure misses its target.
 */
import { audit } from './audit.ts';
import { type Claim, type Finding, isMet } from './claim.ts';
import { createToken } from './create-token.ts';
import { getToken } from './get-token.ts';
import { getTokenAlone } from './get-token-alone.ts';
import { hostLoss } from './host-loss.ts';
import { idempotency } from './idempotency.ts';
import { type Lab, openLab } from './lab.ts';
import { memory } from './memory.ts';
import { proxy } from './proxy.ts';
import { proxy64k } from './proxy-64k.ts';
import { proxyLatency } from './proxy-latency.ts';
import { proxyStream } from './proxy-stream.ts';
import { proxyTransforms } from './proxy-transforms.ts';
import { react } from './react.ts';
import { reactAsync } from './react-async.ts';
import { reactWaiting } from './react-waiting.ts';
import { readBesideBomb } from './read-beside-bomb.ts';
import { environmentLine, failureText, findingText, headText, writeResults } from './report.ts';
import { bombs } from './sandbox-bombs.ts';
import { size } from './size.ts';
import { start } from './start.ts';
import { sweep } from './sweep.ts';
import { transaction } from './transaction.ts';

const CLAIMS: readonly Claim[] = [
  ...[getToken, getTokenAlone, createToken, audit, idempotency, transaction, size, memory, start],
  ...[react, reactWaiting, reactAsync, hostLoss, readBesideBomb, bombs, sweep],
  ...[proxy, proxy64k, proxyTransforms, proxyLatency, proxyStream],
];

/** Those that were named; all of them when none was. Throws with the names that exist. */
function chosenClaims(names: readonly string[]): readonly Claim[] {
  const unknown = names.filter((name) => !CLAIMS.some((claim) => claim.name === name));
  if (unknown.length > 0) {
    const known = CLAIMS.map(({ name }) => name).join(', ');
    throw new Error(`no such claim: ${unknown.join(', ')}; there are ${known}`);
  }
  return names.length === 0 ? CLAIMS : CLAIMS.filter(({ name }) => names.includes(name));
}

interface Outcome {
  readonly findings: Finding[];
  /** Claims whose run failed: a server that answers errors is not measured. */
  readonly failed: string[];
}

async function measureAll(claims: readonly Claim[], lab: Lab): Promise<Outcome> {
  const outcome: Outcome = { findings: [], failed: [] };
  process.stdout.write(headText());
  for (const claim of claims) {
    try {
      for (const finding of await claim.measure(lab)) {
        process.stdout.write(findingText(finding));
        outcome.findings.push(finding);
      }
    } catch (error) {
      process.stdout.write(failureText(claim.name, error));
      outcome.failed.push(claim.name);
    } finally {
      await lab.release();
    }
  }
  return outcome;
}

async function main(names: readonly string[]): Promise<number> {
  if (process.platform !== 'linux') throw new Error('CPU time is read from /proc: Linux only');
  const claims = chosenClaims(names);
  const machine = environmentLine();
  process.stdout.write(`\nSallyport bench · ${machine}\n\n`);
  const lab = await openLab(process.env);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void lab.close().finally(() => process.exit(1)));
  }
  try {
    const { findings, failed } = await measureAll(claims, lab);
    process.stdout.write(`\n  ${await writeResults(machine, findings)}\n`);
    return failed.length === 0 && findings.every(isMet) ? 0 : 1;
  } finally {
    await lab.close();
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : 'unknown error'}\n`);
  process.exitCode = 1;
}
