/**
 * What the audit trail tells of management: each change in the transaction that makes it, and attempts
 * by keys without the permission.
 */
import type { Operation } from '../shared/api/operation.ts';
import type { AuditEntry, AuditOperation, EntityType } from '../shared/audit/audit-entry.ts';
import { insertAudit } from '../shared/audit/write-audit.ts';
import type { ChangedEntity } from '../shared/config-entries/config-change.ts';
import type { Queryable } from '../shared/postgres/pool.ts';
import type { AuthenticatedKey } from './authenticate.ts';

/** What a request asks for, and by which id it is found again. */
export interface AuditOrigin {
  readonly operation: Operation;
  readonly trace_id: string;
}

/** By the first segment of a path; logs and reports are the tenant's. */
const ENTITIES: Readonly<Record<string, EntityType>> = {
  applications: 'application',
  proxies: 'proxy',
  reactors: 'reactor',
  'reactor-formulas': 'reactor_formula',
};

const ACTIONS: readonly AuditOperation[] = ['create', 'read', 'update', 'delete'];

/** What an operation does, by the permission that it needs; a new key or secret is none of these. */
function actionOf({ permission, path }: Operation): AuditOperation {
  if (path.endsWith('/regenerate') || path.endsWith('/webhook-secret')) return 'regenerate';
  return ACTIONS.find((action) => permission.endsWith(`:${action}`)) ?? 'read';
}

function entryOf(
  { operation, trace_id }: AuditOrigin,
  { tenant_id, application_id }: Pick<AuthenticatedKey, 'tenant_id' | 'application_id'>,
): Omit<AuditEntry, 'entity_type' | 'entity_id' | 'denied'> {
  return {
    ...{ tenant_id, actor_type: 'application', actor_id: application_id },
    ...{ operation: actionOf(operation), trace_id },
  };
}

/** In the transaction of the change, made by `caller` to `entity`. */
export async function auditChange(
  client: Queryable,
  caller: Pick<AuthenticatedKey, 'tenant_id' | 'application_id'> & { readonly origin: AuditOrigin },
  { kind, id }: ChangedEntity,
): Promise<void> {
  const isSecret = caller.origin.operation.path.endsWith('/webhook-secret');
  const entity_type = isSecret ? 'webhook_secret' : kind;
  const entity = { entity_type, entity_id: isSecret ? null : id } as const;
  await insertAudit(client, [{ ...entryOf(caller.origin, caller), ...entity, denied: false }]);
}

/** `id`: the path parameter, when it is an id. */
export async function auditDenial(
  db: Queryable,
  origin: AuditOrigin,
  key: AuthenticatedKey,
  id: string | undefined,
): Promise<void> {
  const [, segment = ''] = origin.operation.path.split('/');
  const entity_type = ENTITIES[segment] ?? 'tenant';
  const entity_id = id ?? (entity_type === 'tenant' ? key.tenant_id : null);
  await insertAudit(db, [{ ...entryOf(origin, key), entity_type, entity_id, denied: true }]);
}

/** Made by the command line or the first start, in their transactions. */
export async function auditSystemChange(
  client: Queryable,
  change: Pick<AuditEntry, 'tenant_id' | 'entity_type' | 'entity_id' | 'trace_id'>,
): Promise<void> {
  const system = { actor_type: 'system', actor_id: null, operation: 'create' } as const;
  await insertAudit(client, [{ ...change, ...system, denied: false }]);
}
