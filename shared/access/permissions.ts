/**
 * The permissions of the API and the application types that may hold each (facts 3.2). This table is
 * the only place that says so; what is not in it does not exist.
 */

export const APPLICATION_TYPES = ['public', 'private', 'management'] as const;

export type ApplicationType = (typeof APPLICATION_TYPES)[number];

interface PermissionFacts {
  readonly description: string;
  readonly application_types: readonly ApplicationType[];
}

const CLIENTS = ['public', 'private'] as const;
const SERVERS = ['private'] as const;
const MANAGEMENT = ['management'] as const;

const CATALOGUE = {
  'token:create': { description: 'Create tokens', application_types: CLIENTS },
  'token:read': { description: 'Read tokens', application_types: SERVERS },
  'token:search': { description: 'Search tokens', application_types: SERVERS },
  'token:update': { description: 'Update tokens', application_types: CLIENTS },
  'token:delete': { description: 'Delete tokens', application_types: SERVERS },
  'token:use': { description: 'Use tokens in reactors and proxies', application_types: SERVERS },
  'tenant:read': { description: 'Read the tenant', application_types: MANAGEMENT },
  'tenant:update': { description: 'Update the tenant', application_types: MANAGEMENT },
  'tenant:delete': { description: 'Delete the tenant', application_types: MANAGEMENT },
  'tenant:member:read': { description: 'Read tenant members', application_types: MANAGEMENT },
  'tenant:member:update': { description: 'Update tenant members', application_types: MANAGEMENT },
  'tenant:member:delete': { description: 'Remove tenant members', application_types: MANAGEMENT },
  'tenant:invitation:create': {
    description: 'Create tenant invitations',
    application_types: MANAGEMENT,
  },
  'tenant:invitation:read': {
    description: 'Read tenant invitations',
    application_types: MANAGEMENT,
  },
  'tenant:invitation:update': {
    description: 'Update tenant invitations',
    application_types: MANAGEMENT,
  },
  'tenant:invitation:delete': {
    description: 'Delete tenant invitations',
    application_types: MANAGEMENT,
  },
  'application:create': { description: 'Create applications', application_types: MANAGEMENT },
  'application:read': { description: 'Read applications', application_types: MANAGEMENT },
  'application:update': { description: 'Update applications', application_types: MANAGEMENT },
  'application:delete': { description: 'Delete applications', application_types: MANAGEMENT },
  'log:read': { description: 'Read logs', application_types: MANAGEMENT },
  'reactor:create': { description: 'Create reactors and formulas', application_types: MANAGEMENT },
  'reactor:read': { description: 'Read reactors and formulas', application_types: MANAGEMENT },
  'reactor:update': { description: 'Update reactors and formulas', application_types: MANAGEMENT },
  'reactor:delete': { description: 'Delete reactors and formulas', application_types: MANAGEMENT },
  'proxy:create': { description: 'Create proxies', application_types: MANAGEMENT },
  'proxy:read': { description: 'Read proxies', application_types: MANAGEMENT },
  'proxy:update': { description: 'Update proxies', application_types: MANAGEMENT },
  'proxy:delete': { description: 'Delete proxies', application_types: MANAGEMENT },
  'report:read': { description: 'Read usage reports', application_types: MANAGEMENT },
} as const satisfies Record<string, PermissionFacts>;

/** The name of a permission, `<resource>:<action>`. */
export type Permission = keyof typeof CATALOGUE;

/** A permission as `GET /permissions` answers it. */
export interface PermissionDescription {
  type: Permission;
  description: string;
  application_types: readonly ApplicationType[];
}

const PERMISSIONS: readonly PermissionDescription[] = Object.entries(CATALOGUE).map(
  ([type, facts]) => ({ type: type as Permission, ...facts }),
);

/** All permissions in the order of the catalogue, or those that `type` may hold. */
export function listPermissions(type?: ApplicationType): PermissionDescription[] {
  return PERMISSIONS.filter(
    (permission) => type === undefined || permission.application_types.includes(type),
  );
}

/** Own names only: `constructor` is no permission. */
export function isPermission(name: unknown): name is Permission {
  return typeof name === 'string' && Object.hasOwn(CATALOGUE, name);
}

export function isApplicationType(name: unknown): name is ApplicationType {
  return APPLICATION_TYPES.some((type) => type === name);
}

/** Whether an application of this type may hold the permission (facts 3.2). */
export function isAllowedFor(permission: Permission, type: ApplicationType): boolean {
  const types: readonly ApplicationType[] = CATALOGUE[permission].application_types;
  return types.includes(type);
}

/** Token permissions are the ones that access rules govern (facts 3.3). */
export function isTokenPermission(permission: Permission): boolean {
  return permission.startsWith('token:');
}
