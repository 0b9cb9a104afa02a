/**
 * One line of the audit trail: who did what to which resource, through what. Names, values, masks and
 * metadata have no place in it (design section 1, invariant 1).
 */

/** In the order in which they are listed to administrators. */
export const ENTITY_TYPES = [
  'application',
  'proxy',
  'reactor',
  'reactor_formula',
  'tenant',
  'token',
  'webhook_secret',
] as const;

export type EntityType = (typeof ENTITY_TYPES)[number];

/** `use`: the value went into a reactor or to a destination, and nobody was shown it. */
export type AuditOperation = 'create' | 'read' | 'update' | 'delete' | 'use' | 'regenerate';

/** `system`: the command line and the first start. */
export type ActorType = 'application' | 'user' | 'system';

/** The reactor or proxy through which a token was used, or whose script asked for it. */
export interface Via {
  readonly type: 'reactor' | 'proxy';
  readonly id: string;
}

/** Ids of applications, tenants and the like are UUIDs; so is `via_id`. */
export interface AuditEntry {
  tenant_id: string;
  actor_type: ActorType;
  actor_id: string | null;
  entity_type: EntityType;
  /** `null` where an attempt was denied before it named one. */
  entity_id: string | null;
  operation: AuditOperation;
  via_type?: Via['type'] | undefined;
  via_id?: string | undefined;
  /** Of a token: where it was at that moment. */
  container?: string | undefined;
  denied: boolean;
  trace_id: string;
}
