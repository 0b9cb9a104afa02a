/** How fast expired tokens are removed, and what the reads beside it notice of it. */
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '../shared/observability/logger.ts';
import { keepSweeping } from '../shared/sweeps/keep-sweeping.ts';
import { sweepExpiredTokens } from '../shared/tokens/sweep-tokens.ts';
import { readCards } from './cards.ts';
import type { Claim } from './claim.ts';
import { type Load, startHttpLoad } from './load/load.ts';
import { seedCards } from './seed-cards.ts';
import { median } from './statistics.ts';
import { createVault, runSql, startDataPlane, type Vault } from './vault.ts';

const TOKENS = 1_000;
const CONNECTIONS = 8;
const ROUNDS = 5;
const SECONDS = 3;
/** More than is removed while the reads are measured. */
const BACKLOG = 200_000;
const TERMS = 2;

export const sweep: Claim = {
  name: 'sweep',
  async measure(lab) {
    const vault = await createVault(lab, 'sweep');
    const workload = readCards(vault, await seedCards(vault, TOKENS));
    await expire(vault, BACKLOG);
    const { port } = await startDataPlane(lab, vault);
    const load = lab.keep(
      await startHttpLoad({ port, connections: CONNECTIONS, workloads: [workload] }),
    );
    await load.run({ seconds: 3 });
    const idle = await measure(load);
    const sweeping = startSweeping(vault);
    const beside = await measure(load);
    const withReads = await sweeping.stop();
    const alone = startSweeping(vault);
    await delay(SECONDS * 1_000);
    const withoutReads = await alone.stop();
    const rounds = beside.map((p99, index) => p99 / (idle[index] ?? p99));
    return [
      {
        title: 'expired tokens removed a second, nothing else to do',
        unit: '/s',
        value: withoutReads,
        rounds: [withoutReads],
        target: { atLeast: 5_000 },
        details: { terms_of_each: TERMS },
      },
      {
        title: 'expired tokens removed a second beside reads at full speed',
        unit: '/s',
        value: withReads,
        rounds: [withReads],
        details: { terms_of_each: TERMS },
      },
      {
        title: 'p99 of GET /tokens/{id} beside a sweep at full speed : without',
        unit: 'x',
        value: median(rounds),
        rounds,
        details: { idle_p99_ms: median(idle), beside_p99_ms: median(beside) },
      },
    ];
  },
};

/** Tokens whose time is over, as a create would have left them. */
async function expire({ databaseUrl, tenantId }: Vault, count: number): Promise<void> {
  await runSql(
    databaseUrl,
    `WITH made AS (
       INSERT INTO tokens (tenant_id, id, type, container, sealed, expires_at, created_by)
       SELECT '${tenantId}', gen_random_uuid(), 'card', '/pci/high/', decode(repeat('5e', 400), 'hex'),
         clock_now() - g * interval '1 ms', gen_random_uuid()
       FROM generate_series(1, ${count}) AS g RETURNING tenant_id, id
     )
     INSERT INTO token_terms (tenant_id, token_id, hash)
     SELECT tenant_id, id, sha256((id || n)::bytea) FROM made, generate_series(1, ${TERMS}) AS n`,
  );
  await runSql(databaseUrl, 'VACUUM ANALYZE');
}

/** `stop` answers how many were removed a second. */
function startSweeping({ pool }: Vault): { stop(): Promise<number> } {
  const stopping = new AbortController();
  const began = performance.now();
  let removed = 0;
  const run = (limit: number) => sweepExpiredTokens(pool, limit);
  const sweeping = keepSweeping({
    sweeps: [{ subject: 'expired_tokens', every_ms: 1_000, run }],
    onRows: (_, count) => {
      removed += count;
    },
    log: createLogger('bench', 'warn'),
    signal: stopping.signal,
  });
  return {
    async stop() {
      const seconds = (performance.now() - began) / 1_000;
      const rate = removed / seconds;
      stopping.abort();
      await sweeping;
      return rate;
    },
  };
}

async function measure(load: Load): Promise<number[]> {
  const p99: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    p99.push((await load.run({ seconds: SECONDS })).p99_ms);
  }
  return p99;
}
