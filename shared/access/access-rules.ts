/**
 * What an application may do to the tokens of a container, compiled from its rules and permissions
 * (facts 3.3, design section 12). Whatever is not granted here is denied.
 */
import { containerCovers, ROOT_CONTAINER } from './containers.ts';
import {
  type ApplicationType,
  isAllowedFor,
  isPermission,
  isTokenPermission,
  type Permission,
} from './permissions.ts';

export const TRANSFORMS = ['redact', 'mask', 'reveal'] as const;

/** How token data appears: left out, as its mask, or in clear. */
export type Transform = (typeof TRANSFORMS)[number];

/** One rule in its validated form: container in normal form, permissions all `token:*`. */
export interface AccessRule {
  description?: string;
  /** From 1; the lowest number that covers the container and grants the permission decides. */
  priority: number;
  container: string;
  transform: Transform;
  permissions: Permission[];
}

export interface AccessGrants {
  permissions: Permission[];
  rules: AccessRule[];
}

/** As it may stand in a stored row: permissions of another version of this table are possible. */
export interface StoredAccess {
  type: ApplicationType;
  permissions: readonly string[];
  rules: readonly (Omit<AccessRule, 'permissions'> & { permissions: readonly string[] })[];
}

export interface Access {
  readonly type: ApplicationType;
  /** The transform for this permission in this container (normal form); undefined: denied, 403. */
  decide(permission: Permission, container: string): Transform | undefined;
  /** Whether the permission is held anywhere, in a rule or plainly. */
  holds(permission: Permission): boolean;
  /**
   * The shortest list of container prefixes in which the permission is held: `['/']` when
   * everywhere, empty when nowhere. For filtering lists before `decide` judges each token.
   */
  containersFor(permission: Permission): readonly string[];
}

interface Grant {
  readonly container: string;
  readonly transform: Transform;
}

const NO_GRANTS: readonly Grant[] = [];
const NO_CONTAINERS: readonly string[] = [];

/**
 * The decision table of an application. Rules come first by ascending priority; a rule that covers
 * the container without granting the permission is skipped; the plain permissions are a last rule on
 * `/`. Permissions that do not exist or that the type may not hold are left out, whatever the row
 * says.
 */
export function compileAccess(application: StoredAccess): Access {
  const { type } = application;
  const held = new Set<Permission>();
  const grants = new Map<Permission, Grant[]>();
  const add = (permission: string, grant: Grant): void => {
    if (!isPermission(permission) || !isAllowedFor(permission, type)) return;
    held.add(permission);
    if (isTokenPermission(permission)) addGrant(grants, permission, grant);
  };
  for (const rule of application.rules.toSorted((a, b) => a.priority - b.priority)) {
    for (const permission of rule.permissions) add(permission, rule);
  }
  for (const permission of application.permissions) {
    add(permission, { container: ROOT_CONTAINER, transform: implicitTransform(permission) });
  }
  const containers = new Map(Array.from(grants, ([name, list]) => [name, coveringSet(list)]));
  return {
    type,
    decide: (permission, container) => firstGrant(grants.get(permission), container),
    holds: (permission) => held.has(permission),
    containersFor: (permission) => containers.get(permission) ?? NO_CONTAINERS,
  };
}

/** Facts 3.3, "implicit transforms". A deletion shows nothing, so it gets the least. */
function implicitTransform(permission: string): Transform {
  if (permission === 'token:use') return 'reveal';
  return permission === 'token:delete' ? 'redact' : 'mask';
}

/** Keeps order; a grant behind one that already covers its container can never decide. */
function addGrant(grants: Map<Permission, Grant[]>, permission: Permission, grant: Grant): void {
  const list = grants.get(permission);
  const own = { container: grant.container, transform: grant.transform };
  if (list === undefined) grants.set(permission, [own]);
  else if (firstGrant(list, grant.container) === undefined) list.push(own);
}

/** On the path of every token operation: no allocation, a prefix comparison per grant. */
function firstGrant(
  grants: readonly Grant[] = NO_GRANTS,
  container: string,
): Transform | undefined {
  for (const grant of grants) {
    if (containerCovers(grant.container, container)) return grant.transform;
  }
  return undefined;
}

/** The containers of the grants without those that lie inside another. */
function coveringSet(grants: readonly Grant[]): readonly string[] {
  const all = [...new Set(grants.map((grant) => grant.container))];
  return all.filter((one) => !all.some((other) => other !== one && containerCovers(other, one)));
}
