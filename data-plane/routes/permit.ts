/** Answers that every token route shares: what a key may not do, and what is not there. */
import type { Transform } from '../../shared/access/access-rules.ts';
import type { Permission } from '../../shared/access/permissions.ts';
import { ApiError } from '../../shared/errors.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';

/** Throws 403 unless the application holds the permission in any rule. */
export function requireHeld({ access }: CachedApplication, permission: Permission): void {
  if (!access.holds(permission)) throw forbidden(permission);
}

/** The transform for a container; 403 when no rule grants the permission there. */
export function requireTransform(
  { access }: CachedApplication,
  permission: Permission,
  container: string,
): Transform {
  const transform = access.decide(permission, container);
  if (transform === undefined) throw forbidden(permission);
  return transform;
}

function forbidden(permission: Permission): ApiError {
  return new ApiError('forbidden', `The key lacks the permission ${permission} here`);
}

/** Also for tokens of other tenants, and for those whose time is over. */
export function tokenNotFound(): ApiError {
  return new ApiError('not_found', 'The token does not exist');
}

/** Answers to writes never show clear data, even under a reveal rule (design section 12). */
export function withoutReveal(transform: Transform): Transform {
  return transform === 'reveal' ? 'mask' : transform;
}

/**
 * Throws 404 for a write inside a transaction: none can be open, since they are not served yet. A
 * write outside of it would be more than was asked for.
 */
export function refuseTransaction(transactionId: string | undefined): void {
  if (transactionId !== undefined) {
    throw new ApiError('not_found', 'The transaction of BT-TRANSACTION-ID does not exist');
  }
}
