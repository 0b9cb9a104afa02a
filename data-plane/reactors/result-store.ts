/**
 * Results of asynchronous reactions in Postgres: at most one per request, sealed, and never answered
 * after a day, nor after a cvc is due that was opened for them, whether or not somebody has swept by then.
 */
import type { DataKeys, TenantKeys } from '../../shared/crypto/data-keys.ts';
import { seal, sealLabel } from '../../shared/crypto/envelope.ts';
import { ApiError } from '../../shared/errors.ts';
import { milliseconds } from '../../shared/postgres/milliseconds.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { IS_OVER } from '../../shared/sweeps/erase-due.ts';
import type { Answer } from '../exchange.ts';
import type { UsedTransforms } from '../used-containers.ts';
import { problemAnswer } from './problem-answer.ts';

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

/** With the moment it is due, if it is: who moves that opens nothing. */
function label(name: ResultName, due_at_ms: number | null): Buffer {
  const { tenant_id, id, reactor_id, application_id } = name;
  const due = due_at_ms === null ? [] : [String(due_at_ms)];
  return sealLabel('reactor-result', tenant_id, id, reactor_id, application_id, ...due);
}

/** In the place of a result that is due. */
function overAnswer(): Answer {
  const detail = 'The result is not kept any more, since a cvc was opened for it';
  return problemAnswer(new ApiError('conflict', detail));
}

/** The head as one line of JSON, then the body as it is: it may be large, and is not parsed. */
export function sealResult(
  { current }: TenantKeys,
  name: ResultName,
  { answer: { status, headers, body }, used }: StoredResult,
  due_at_ms: number | null,
): Buffer {
  const head = JSON.stringify({ status, headers, used });
  const text = body === undefined ? head : `${head}\n${body}`;
  return seal(current, Buffer.from(text), label(name, due_at_ms));
}

/** In the transaction that ends the job of the run, which makes it the only one. */
export async function insertResult(
  client: Queryable,
  { tenant_id, id, reactor_id, application_id }: ResultName,
  sealed: Buffer,
  due_at_ms: number | null,
): Promise<void> {
  await client.query({
    name: 'insert-reactor-result',
    text: `
      INSERT INTO reactor_results (tenant_id, id, reactor_id, application_id, sealed, due_at)
      VALUES ($1, $2, $3, $4, $5, to_timestamp($6::float8 / 1000))`,
    values: [tenant_id, id, reactor_id, application_id, sealed, due_at_ms],
  });
}

export interface FoundResult extends ResultName, StoredResult {}

/**
 * `undefined` when there is none, not yet or not any more. One that was due before its day is over is an
 * error that says so.
 */
export async function findResult(
  db: Queryable,
  dataKeys: DataKeys,
  tenantId: string,
  id: string,
): Promise<FoundResult | undefined> {
  type Row = ResultName & { sealed: Buffer | null; due_at_ms: number | null };
  const { rows } = await db.query<Row>({
    name: 'find-reactor-result',
    text: `
      SELECT tenant_id, id, reactor_id, application_id, ${milliseconds('due_at')} AS due_at_ms,
        CASE WHEN NOT ${IS_OVER} THEN sealed END AS sealed FROM reactor_results
      WHERE tenant_id = $1 AND id = $2
        AND created_at > clock_now() - make_interval(hours => ${RESULT_HOURS})`,
    values: [tenantId, id],
  });
  const row = rows[0];
  if (row === undefined) return undefined;
  const { sealed, due_at_ms, ...name } = row;
  if (sealed === null) return { ...name, answer: overAnswer(), used: [] };
  const text = (await dataKeys.open(tenantId, sealed, label(name, due_at_ms))).toString('utf8');
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
