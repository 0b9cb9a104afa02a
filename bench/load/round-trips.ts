/** One prepared read of a token's row by primary key after another, on one connection of `pg`. */
import pg from 'pg';
import { TOKEN_COLUMNS } from '../../shared/tokens/token-row.ts';
import { runAsBenchProcess } from '../child-process.ts';
import { goesOn, type RunLimit, type RunResult, resultOf } from './load.ts';

export interface RoundTripSettings {
  readonly connectionString: string;
  readonly tenantId: string;
  readonly ids: readonly string[];
}

async function begin({ connectionString, tenantId, ids }: RoundTripSettings) {
  const client = new pg.Client({ connectionString });
  await client.connect();

  async function readOne(): Promise<void> {
    const id = ids[Math.floor(Math.random() * ids.length)];
    const { rowCount } = await client.query({
      name: 'read-one-row',
      text: `SELECT ${TOKEN_COLUMNS} FROM tokens t WHERE t.tenant_id = $1 AND t.id = $2`,
      values: [tenantId, id],
    });
    if (rowCount !== 1) throw new Error('a token is not there');
  }

  async function serve(limit: RunLimit): Promise<RunResult> {
    const startedAt = performance.now();
    const latencies_ms: number[] = [];
    while (goesOn(limit, latencies_ms.length, startedAt)) {
      const sentAt = performance.now();
      await readOne();
      latencies_ms.push(performance.now() - sentAt);
    }
    return resultOf(latencies_ms, startedAt);
  }
  return { ready: {}, serve };
}

runAsBenchProcess(begin);
