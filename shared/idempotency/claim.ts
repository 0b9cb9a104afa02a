/**
 * What an idempotency key stands for: one operation on one path by one application. Known to the
 * database as an HMAC under the tenant's search key, so nothing of the client's key is stored.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import { type Operation, takesIdempotencyKey } from '../api/operation.ts';
import type { TenantKeys } from '../crypto/data-keys.ts';
import { ApiError } from '../errors.ts';

/** A request's claim to have its effect once. */
export interface IdempotencyClaim {
  readonly tenant_id: string;
  /** A UUID, as Postgres writes it. */
  readonly scope: string;
  /** Seals the answer that is kept. */
  readonly keys: TenantKeys;
}

export interface ScopeParts {
  readonly application_id: string;
  readonly operation: Pick<Operation, 'method' | 'path'>;
  /** Values of the path's parameters, decoded, in their order. */
  readonly params: readonly string[];
  readonly key: string;
}

const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * The key of a request to `operation`, as its header says; `undefined` when there is none or it means
 * nothing there. Throws 400 for what is no key.
 */
export function readIdempotencyKey(
  operation: Pick<Operation, 'method' | 'safe'>,
  header: string | undefined,
): string | undefined {
  if (header === undefined || !takesIdempotencyKey(operation)) return undefined;
  if (!KEY.test(header)) {
    const detail = 'BT-IDEMPOTENCY-KEY must have 1 to 255 visible ASCII characters';
    throw new ApiError('bad_request', detail);
  }
  return header;
}

/**
 * The first 128 bits of an HMAC, as a UUID. Different parts never give the same text, so no key can be
 * made to mean another's operation.
 */
export function idempotencyScope(searchKey: KeyObject, parts: ScopeParts): string {
  const { application_id, operation, params, key } = parts;
  const text = JSON.stringify([application_id, operation.method, operation.path, ...params, key]);
  const hex = createHmac('sha256', searchKey).update('idempotency\0').update(text).digest('hex');
  const [a, b, c] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16)];
  return `${a}-${b}-${c}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

/** The 409 of a request whose twin is under way. */
export class InProgressError extends ApiError {
  constructor() {
    super('conflict', 'A request with this idempotency key is in progress', {
      headers: { 'retry-after': '1' },
    });
  }
}

export const inProgress = (): ApiError => new InProgressError();
