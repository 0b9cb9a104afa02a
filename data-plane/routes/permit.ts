/** Answers that every token route shares: what a key may not do, and what is not there. */
import type { Transform } from '../../shared/access/access-rules.ts';
import { DeniedError } from '../../shared/access/denied-error.ts';
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
  if (transform === undefined) throw forbidden(permission, container);
  return transform;
}

function forbidden(permission: Permission, container?: string): ApiError {
  const denied = container === undefined ? {} : { container };
  return new DeniedError(permission, `The key lacks the permission ${permission} here`, denied);
}

/** Also for tokens of other tenants, and for those whose time is over. */
export function tokenNotFound(): ApiError {
  return new ApiError('not_found', 'The token does not exist');
}

/** Answers to writes never show clear data, even under a reveal rule (design section 12). */
export function withoutReveal(transform: Transform): Transform {
  return transform === 'reveal' ? 'mask' : transform;
}
