/** What the audit trail costs `GET /tokens/{id}` of revealed cards at 64 connections. */
import type { AuditMode } from '../shared/audit/write-audit.ts';
import { readCards } from './cards.ts';
import { startProcess } from './child-process.ts';
import type { Claim, Finding } from './claim.ts';
import type { Lab } from './lab.ts';
import type { Workload } from './load/workload.ts';
import type { AuditedSettings } from './peers/audited.ts';
import { interleave, perCpuSecond, type Round, ratio, type Subject, summary } from './rounds.ts';
import { seedCards } from './seed-cards.ts';
import { startSubject } from './start-subject.ts';
import { createVault, DATA_PLANE_CONNECTIONS, type Vault } from './vault.ts';

const TOKENS = 10_000;
const PLAN = { rounds: 7, limit: { seconds: 3 }, warmUp: { seconds: 5 } };
const perSecond = ({ operations, wall_s }: Round): number => operations / wall_s;

export const audit: Claim = {
  name: 'audit',
  async measure(lab) {
    const vault = await createVault(lab, 'audit');
    const workload = readCards(vault, await seedCards(vault, TOKENS));
    const subjects = {
      batched: await start(lab, vault, workload, 'batched'),
      strict: await start(lab, vault, workload, 'strict'),
      off: await start(lab, vault, workload, 'off'),
    };
    const rounds = await interleave(subjects, { ...PLAN, postgresPid: lab.postgresPid() });
    const details = {
      ...summary('batched', rounds.batched),
      ...summary('strict', rounds.strict),
      ...summary('off', rounds.off),
    };
    const find = (
      title: string,
      ours: readonly Round[],
      figure: typeof perSecond,
      atLeast?: number,
    ): Finding => ({
      title: `GET /tokens/{id} ${title} : without an audit trail`,
      ...{ unit: 'x', ...ratio(ours, rounds.off, figure), details },
      ...(atLeast === undefined ? {} : { target: { atLeast } }),
    });
    return [
      find('per CPU-second, audited in batches', rounds.batched, perCpuSecond, 0.85),
      find('per CPU-second, audited before the answer', rounds.strict, perCpuSecond, 0.5),
      find('per second, audited in batches', rounds.batched, perSecond),
      find('per second, audited before the answer', rounds.strict, perSecond),
    ];
  },
};

async function start(
  lab: Lab,
  { databaseUrl, kek }: Vault,
  workload: Workload,
  audit: AuditMode,
): Promise<Subject> {
  const databasePoolMax = DATA_PLANE_CONNECTIONS;
  const settings: AuditedSettings = { databaseUrl, kek, databasePoolMax, audit };
  const peer = lab.keep(await startProcess<{ port: number }>('peers/audited.ts', settings));
  return startSubject(lab, { port: peer.ready.port, pid: peer.pid }, workload);
}
