/** The plans that prepared statements end up with, whatever their parameters are. */
import pg from 'pg';
import type { Pool, Queryable } from '../../shared/postgres/pool.ts';
import { createTestPool } from '../support/postgres.ts';

export interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: PlanNode[];
}

export interface PlanDatabase {
  /** A superuser's connection, to fill tables by. */
  readonly admin: pg.Client;
  /** One session as the product has them. */
  readonly pool: Pool;
  /** Every node of a statement's plan. */
  genericPlan(text: string): Promise<PlanNode[]>;
  /** The texts that `run` sends, in order; they are carried out. */
  statementsOf(run: (db: Queryable) => Promise<unknown>): Promise<string[]>;
  drop(): Promise<void>;
}

function* nodesOf(plan: PlanNode): Generator<PlanNode> {
  yield plan;
  for (const child of plan.Plans ?? []) yield* nodesOf(child);
}

export async function createPlanDatabase(): Promise<PlanDatabase> {
  const { database, pool, drop } = await createTestPool(1);
  const admin = new pg.Client({ connectionString: database.adminConnectionString });
  await admin.connect();
  return {
    admin,
    pool,
    async genericPlan(text) {
      const { rows } = await pool.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
      return [...nodesOf(rows[0]['QUERY PLAN'][0].Plan as PlanNode)];
    },
    async statementsOf(run) {
      const texts: string[] = [];
      const query = ((statement: string | pg.QueryConfig, ...rest: never[]) => {
        texts.push(typeof statement === 'string' ? statement : statement.text);
        return admin.query(statement as string, ...rest);
      }) as Queryable['query'];
      await run({ query });
      return texts;
    },
    async drop() {
      await admin.end();
      await drop();
    },
  };
}
