/** Reactors of the bench: stored like any other, called over HTTP. */
import { randomUUID } from 'node:crypto';
import type { Workload } from './load/workload.ts';
import type { Vault } from './vault.ts';

/** Stores a reactor with this code; returns its id. */
export async function createReactor({ pool, tenantId }: Vault, code: string): Promise<string> {
  const id = randomUUID();
  await pool.query(
    `INSERT INTO reactors (tenant_id, id, name, code, code_version)
     VALUES ($1, $2, 'Bench', $3, $4)`,
    [tenantId, id, code, randomUUID()],
  );
  return id;
}

/** `POST /reactors/{id}/react` with these arguments; the answer must contain `contains`. */
export function reactWith(
  { key }: Vault,
  reactorId: string,
  args: object,
  contains: string,
): Workload {
  const body = JSON.stringify({ args });
  const head = [
    `POST /reactors/${reactorId}/react HTTP/1.1`,
    'host: localhost',
    `bt-api-key: ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return { request: `${head.join('\r\n')}\r\n\r\n${body}`, status: 200, contains, values: [''] };
}
