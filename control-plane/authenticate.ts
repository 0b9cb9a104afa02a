/**
 * Who is calling: from the `BT-API-KEY` header to an application of a tenant. Reads Postgres on every
 * request, so a revoked key is refused at once; nothing is cached in this plane.
 */
import type { KeyObject } from 'node:crypto';
import { hashApiKey, isWellFormedApiKey } from '../shared/api-keys.ts';
import { loadApplicationByKeyHash } from '../shared/config-entries/application-entry.ts';
import { ApiError } from '../shared/errors.ts';
import type { Queryable } from '../shared/postgres/pool.ts';
import type { AuditOrigin } from './audit-change.ts';
import type { OperationClaim } from './keep-answer.ts';

export interface AuthenticatedKey {
  tenant_id: string;
  application_id: string;
  permissions: readonly string[];
}

export interface Caller extends AuthenticatedKey {
  /** For the audit trail. */
  readonly origin: AuditOrigin;
  /** To have the effect once, when the request has an idempotency key. */
  claim?: OperationClaim | undefined;
  /**
   * Throws 401 or 403 when the caller may no longer do what it asked for: a request can wait with its
   * body until its right is gone. To be asked in the transaction that writes, behind the tenant's lock.
   */
  confirm(client: Queryable): Promise<void>;
}

/**
 * The application behind `key`. Throws 401, the same for a missing, malformed, unknown, revoked or
 * expired key; only a well-formed one costs a query. Expiry is judged by the database's clock.
 */
export async function authenticate(
  db: Queryable,
  pepper: KeyObject,
  key: string | undefined,
): Promise<AuthenticatedKey> {
  if (key === undefined || !isWellFormedApiKey(key)) throw unauthorized();
  const loaded = await loadApplicationByKeyHash(db, hashApiKey(key, pepper));
  if (loaded === undefined) throw unauthorized();
  const { tenant_id, application_id, permissions, expires_at_ms } = loaded.entry;
  if (expires_at_ms !== null && expires_at_ms <= loaded.now_ms) throw unauthorized();
  return { tenant_id, application_id, permissions };
}

function unauthorized(): ApiError {
  return new ApiError('unauthorized', 'A missing or invalid BT-API-KEY was provided');
}
