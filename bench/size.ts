/**
 * What reads, creates and the first list page cost with 300 thousand tokens, against 10 thousand:
 * two databases side by side. Cost is CPU of the server and of Postgres together, since it is the
 * database that size would slow down.
 */
import { createCards, listCards, readCards } from './cards.ts';
import type { Claim, Finding } from './claim.ts';
import type { Lab } from './lab.ts';
import { type RunLimit, startHttpLoad } from './load/load.ts';
import type { Workload } from './load/workload.ts';
import { interleave, ratio, type Subject, summary, wholeCost } from './rounds.ts';
import { seedCards } from './seed-cards.ts';
import { createVault, runSql, startDataPlane, type Vault } from './vault.ts';

const FEW = 10_000;
const MANY = 300_000;
const CONNECTIONS = 64;
const ROUNDS = 7;
const TIMED = { limit: { seconds: 2 }, warmUp: { seconds: 4 } };
/** A number instead of a time: a few thousand tokens change neither size by much. */
const COUNTED = { limit: { operations: 4_000 }, warmUp: { operations: 12_000 } };

interface Filled {
  readonly vault: Vault;
  readonly ids: string[];
  readonly port: number;
  readonly pid: number;
}

export const size: Claim = {
  name: 'size',
  async measure(lab) {
    const few = await fill(lab, 'size_few', FEW);
    const many = await fill(lab, 'size_many', MANY);
    const compare = (limits: Limits, subject: (filled: Filled) => Promise<Subject>) =>
      compareSizes(lab, few, many, limits, subject);
    return [
      {
        title: 'GET /tokens/{id}, CPU with Postgres : the same with 10,000 tokens',
        ...(await compare(TIMED, (at) => withLoad(lab, at, readCards(at.vault, at.ids)))),
        target: { atMost: 1.3 },
      },
      {
        title: 'GET /tokens?size=20, CPU with Postgres : the same with 10,000 tokens',
        ...(await compare(TIMED, (at) => withLoad(lab, at, listCards(at.vault, at.ids.length)))),
        target: { atMost: 1.5 },
      },
      {
        title: 'POST /tokens, CPU with Postgres : the same with 10,000 tokens',
        ...(await compare(COUNTED, async (at) => ({
          ...(await withLoad(lab, at, createCards(at.vault))),
          tidy: () => removeCreated(at),
        }))),
        target: { atMost: 1.3 },
      },
    ];
  },
};

/** Autovacuum would run in some rounds and not in others; `removeCreated` does its work instead. */
async function fill(lab: Lab, name: string, count: number): Promise<Filled> {
  const vault = await createVault(lab, name);
  await runSql(vault.databaseUrl, 'ALTER TABLE tokens SET (autovacuum_enabled = off)');
  const ids = await seedCards(vault, count);
  return { vault, ids, ...(await startDataPlane(lab, vault)) };
}

async function withLoad(lab: Lab, { port, pid }: Filled, workload: Workload): Promise<Subject> {
  const settings = { port, connections: CONNECTIONS, workloads: [workload] };
  return { load: lab.keep(await startHttpLoad(settings)), pid };
}

interface Limits {
  readonly limit: RunLimit;
  readonly warmUp: RunLimit;
}

async function compareSizes(
  lab: Lab,
  few: Filled,
  many: Filled,
  limits: Limits,
  subjectOf: (filled: Filled) => Promise<Subject>,
): Promise<Pick<Finding, 'unit' | 'value' | 'rounds' | 'details'>> {
  const subjects = { few: await subjectOf(few), many: await subjectOf(many) };
  const plan = { ...limits, rounds: ROUNDS, postgresPid: lab.postgresPid() };
  const rounds = await interleave(subjects, plan);
  await subjects.few.load.stop();
  await subjects.many.load.stop();
  const details = { ...summary('few', rounds.few), ...summary('many', rounds.many) };
  return { unit: 'x', ...ratio(rounds.many, rounds.few, wholeCost), details };
}

/** Back to the size that is measured. */
async function removeCreated({ vault, ids }: Filled): Promise<void> {
  const { databaseUrl, tenantId } = vault;
  await runSql(
    databaseUrl,
    `DELETE FROM tokens WHERE tenant_id = $1 AND (created_at, id) > (
       SELECT created_at, id FROM tokens WHERE tenant_id = $1
       ORDER BY created_at, id OFFSET $2 LIMIT 1)`,
    [tenantId, ids.length - 1],
  );
  await runSql(databaseUrl, 'VACUUM tokens');
}
