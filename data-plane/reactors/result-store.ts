/**
 * Results of asynchronous reactions in Postgres: at most one per request, sealed, and never answered
 * after a day, whether or not somebody has swept by then.
 */
import type { DataKeys, TenantKeys } from '../../shared/crypto/data-keys.ts';
import { seal, sealLabel } from '../../shared/crypto/envelope.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import type { Answer } from '../exchange.ts';
import type { UsedTransforms } from '../used-containers.ts';

export const RESULT_HOURS = 24;

export interface ResultName {
  readonly tenant_id: string;
  /** Of the request. */
  readonly id: string;
  readonly reactor_id: string;
  /** Who asked for it, and nobody else may see it. */
  readonly application_id: string;
}

export interface StoredResult {
  readonly answer: Answer;
  /** What its run had the right to; who has it no more does not see what came of it either. */
  readonly used: UsedTransforms;
}

const label = ({ tenant_id, id, reactor_id, application_id }: ResultName): Buffer =>
  sealLabel('reactor-result', tenant_id, id, reactor_id, application_id);

/** The head as one line of JSON, then the body as it is: it may be large, and is not parsed. */
export function sealResult(
  { current }: TenantKeys,
  name: ResultName,
  { answer: { status, headers, body }, used }: StoredResult,
): Buffer {
  const head = JSON.stringify({ status, headers, used });
  const text = body === undefined ? head : `${head}\n${body}`;
  return seal(current, Buffer.from(text), label(name));
}

/** In the transaction that ends the job of the run, which makes it the only one. */
export async function insertResult(
  client: Queryable,
  { tenant_id, id, reactor_id, application_id }: ResultName,
  sealed: Buffer,
): Promise<void> {
  await client.query({
    name: 'insert-reactor-result',
    text: `
      INSERT INTO reactor_results (tenant_id, id, reactor_id, application_id, sealed)
      VALUES ($1, $2, $3, $4, $5)`,
    values: [tenant_id, id, reactor_id, application_id, sealed],
  });
}

export interface FoundResult extends ResultName, StoredResult {}

/** `undefined` when there is none, not yet or not any more. */
export async function findResult(
  db: Queryable,
  dataKeys: DataKeys,
  tenantId: string,
  id: string,
): Promise<FoundResult | undefined> {
  const { rows } = await db.query<ResultName & { sealed: Buffer }>({
    name: 'find-reactor-result',
    text: `
      SELECT tenant_id, id, reactor_id, application_id, sealed FROM reactor_results
      WHERE tenant_id = $1 AND id = $2
        AND created_at > clock_now() - make_interval(hours => ${RESULT_HOURS})`,
    values: [tenantId, id],
  });
  const row = rows[0];
  if (row === undefined) return undefined;
  const { sealed, ...name } = row;
  const text = (await dataKeys.open(tenantId, sealed, label(name))).toString('utf8');
  const end = text.indexOf('\n');
  const head = JSON.parse(end < 0 ? text : text.slice(0, end)) as Head;
  const body = end < 0 ? {} : { body: text.slice(end + 1) };
  const headers = head.headers === undefined ? {} : { headers: head.headers };
  return { ...name, answer: { status: head.status, ...headers, ...body }, used: head.used };
}

interface Head {
  status: number;
  headers?: readonly string[];
  used: UsedTransforms;
}
