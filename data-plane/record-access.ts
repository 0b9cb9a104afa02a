/**
 * Puts what a request did with tokens, or was refused, into the audit trail before it is answered. What
 * it changed is told by the transaction of the change (write-transaction.ts, token-writer.ts).
 */
import { DeniedError } from '../shared/access/denied-error.ts';
import type { Operation } from '../shared/api/operation.ts';
import type { AuditEntry, AuditOperation, Via } from '../shared/audit/audit-entry.ts';
import { tokenIdProblem } from '../shared/tokens/token-id.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import type { Exchange } from './exchange.ts';
import type { Services } from './services.ts';

/** A token as far as the trail tells. */
export interface AccessedToken {
  readonly id: string;
  readonly container: string;
}

/** Who asks, by which request, through what. */
export interface AccessOrigin {
  readonly head: Pick<Exchange['head'], 'traceId'>;
  readonly callingRun?: Exchange['callingRun'];
  /** The reactor or proxy that the request is sent to; else that whose script sends it counts. */
  readonly via?: Via | undefined;
}

type Actor = Pick<CachedApplication, 'tenant_id' | 'application_id'>;

function entryOf(
  operation: AuditOperation,
  { id, container }: { readonly id: string | null; readonly container: string | undefined },
  { head, callingRun, via = callingRun?.via }: AccessOrigin,
  { tenant_id, application_id }: Actor,
): AuditEntry {
  return {
    tenant_id,
    actor_type: 'application',
    actor_id: application_id,
    entity_type: 'token',
    entity_id: id,
    operation,
    via_type: via?.type,
    via_id: via?.id,
    container,
    denied: false,
    trace_id: head.traceId,
  };
}

export function accessEntries(
  operation: AuditOperation,
  tokens: readonly AccessedToken[],
  origin: AccessOrigin,
  actor: Actor,
): AuditEntry[] {
  return tokens.map((token) => entryOf(operation, token, origin, actor));
}

/** Await what it returns, if anything, before the answer. */
export function recordAccess(
  operation: AuditOperation,
  tokens: readonly AccessedToken[],
  origin: AccessOrigin,
  actor: Actor,
  { audit }: Pick<Services, 'audit'>,
): undefined | Promise<void> {
  if (tokens.length === 0) return undefined;
  return audit.record(accessEntries(operation, tokens, origin, actor));
}

/** What was attempted, by the permission that it needs. */
const ATTEMPTS: Readonly<Record<string, AuditOperation>> = {
  'token:create': 'create',
  'token:read': 'read',
  'token:search': 'read',
  'token:update': 'update',
  'token:delete': 'delete',
  'token:use': 'use',
};

/** What a request asked for, and by which path. */
export interface Attempt extends AccessOrigin {
  /** `null` where the path names no token. */
  readonly token_id: string | null;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** What is no id is not written down: it can be any text of the caller's. */
export function attemptOf({ path }: Operation, { head, params, callingRun }: Exchange): Attempt {
  const { id = '' } = params;
  const isToken = path === '/tokens/{id}' && tokenIdProblem(id) === undefined;
  const isReactor = path.startsWith('/reactors/{id}') && UUID.test(id.toLowerCase());
  const via = isReactor ? ({ type: 'reactor', id } as const) : undefined;
  return { head, callingRun, via, token_id: isToken ? id : null };
}

/** Records an error that is a refusal to a valid key; settles when the answer may leave. */
export async function recordDenial(
  error: unknown,
  { token_id, ...origin }: Attempt,
  actor: Actor,
  { audit }: Pick<Services, 'audit'>,
): Promise<void> {
  if (!(error instanceof DeniedError)) return;
  const operation = ATTEMPTS[error.permission];
  if (operation === undefined) return;
  const { container, tokens = [{ id: token_id, container }] } = error.denied;
  const entries = tokens.map((token) => ({
    ...entryOf(operation, token, origin, actor),
    denied: true,
  }));
  await audit.record(entries);
}
