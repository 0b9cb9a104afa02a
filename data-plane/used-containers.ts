/**
 * What a caller's access decided for each container that a token was used from, so that the same right
 * can be asked for again before what came of those tokens leaves (design section 1, invariant 4).
 */
import type { Access, Transform } from '../shared/access/access-rules.ts';
import { DeniedError } from '../shared/access/denied-error.ts';
import type { Permission } from '../shared/access/permissions.ts';
import type { UsedRight } from '../shared/idempotency/kept-answer.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import { requireTransform } from './routes/permit.ts';

/** What a caller of reactors and proxies needs, there and on each container. */
export const USE: Permission = 'token:use';
/** From the least to the most that is shown. */
const OPENNESS: readonly Transform[] = ['redact', 'mask', 'reveal'];

/** By container, as JSON can hold it. */
export type UsedTransforms = readonly (readonly [container: string, transform: Transform])[];

export class UsedContainers {
  readonly #used: Map<string, Transform>;

  /** With what was used earlier, if anything. */
  constructor(used: UsedTransforms = []) {
    this.#used = new Map(used);
  }

  get transforms(): UsedTransforms {
    return [...this.#used];
  }

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
    for (const [container, transform] of this.#used) {
      requireAsOpen(application, { permission: USE, container, transform });
    }
  }
}

/** Throws 403 when the permission shows less of the container by now. */
export function requireAsOpen(
  application: CachedApplication,
  { permission, container, transform }: UsedRight,
): void {
  const now = requireTransform(application, permission, container);
  if (OPENNESS.indexOf(now) < OPENNESS.indexOf(transform)) {
    const detail = 'The key lost its right to some tokens meanwhile';
    throw new DeniedError(permission, detail, { container });
  }
}
