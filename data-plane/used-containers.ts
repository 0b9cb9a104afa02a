/**
 * What a caller's access decided for each container that a token was used from, so that the same right
 * can be asked for again before what came of those tokens leaves (design section 1, invariant 4).
 */
import type { Access, Transform } from '../shared/access/access-rules.ts';
import type { Permission } from '../shared/access/permissions.ts';
import { ApiError } from '../shared/errors.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import { requireTransform } from './routes/permit.ts';

/** What a caller of reactors and proxies needs, there and on each container. */
export const USE: Permission = 'token:use';
/** From the least to the most that is shown. */
const OPENNESS: readonly Transform[] = ['redact', 'mask', 'reveal'];

export class UsedContainers {
  readonly #used = new Map<string, Transform>();

  /** The same access; what it decides is remembered here. */
  watched(access: Access): Access {
    return {
      ...access,
      decide: (permission, container) => {
        const transform = access.decide(permission, container);
        if (transform !== undefined) this.#used.set(container, transform);
        return transform;
      },
    };
  }

  /** Throws 403 when the application could not use these tokens as openly any more. */
  requireStill(application: CachedApplication): void {
    for (const [container, used] of this.#used) {
      const now = requireTransform(application, USE, container);
      if (OPENNESS.indexOf(now) < OPENNESS.indexOf(used)) {
        throw new ApiError('forbidden', 'The key lost its right to some tokens meanwhile');
      }
    }
  }
}
