/** Requests with idempotency keys, and what the database holds of them. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Pool } from '../../../shared/postgres/pool.ts';
import type { Answer, Call } from '../../support/http-call.ts';
import type { TokenClient } from '../tokens/token-client.ts';

const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };

/** A key of its own. */
export const newKey = (): string => `key-${randomUUID()}`;

/** The rest of a call with an idempotency key. */
export const keyed = (idempotencyKey: string, rest: Call = {}): Call => ({
  ...rest,
  headers: { ...rest.headers, 'bt-idempotency-key': idempotencyKey },
});

/** Creates a token with an idempotency key. */
export const keyedCreate = (by: TokenClient, key: string, json: unknown) =>
  by.send('POST /tokens', keyed(key, { json }));

/** Changes a token with an idempotency key. */
export const keyedPatch = (by: TokenClient, key: string, id: string, json: unknown) =>
  by.send(`PATCH /tokens/${id}`, keyed(key, { body: JSON.stringify(json), headers: MERGE_PATCH }));

/** That one answer is the other's again: status, bytes, and where it says something is. */
export function expectReplay(again: Answer<unknown>, first: Answer<unknown>): void {
  expect([again.status, again.text]).to.deep.equal([first.status, first.text]);
  for (const name of ['content-type', 'location', 'cache-control']) {
    expect(again.headers.get(name), name).to.equal(first.headers.get(name));
  }
  expect(again.headers.get('bt-trace-id')).not.to.equal(first.headers.get('bt-trace-id'));
}

export async function countRecords(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    'SELECT count(*)::int4 AS count FROM idempotency_records',
  );
  return rows[0]?.count ?? 0;
}
