/**
 * Makes an application with its first key, for `POST /applications`, the first start and the command
 * line alike: one set of rules for all three.
 */
import { randomUUID } from 'node:crypto';
import { listPermissions } from '../../shared/access/permissions.ts';
import { validateAccess } from '../../shared/access/validate-access.ts';
import type { CreateApplicationRequest } from '../../shared/api/applications.ts';
import type { Installation } from '../../shared/crypto/installation.ts';
import { type ApiError, fieldError } from '../../shared/errors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { parseExpiresAt } from '../../shared/tokens/expires-at.ts';
import { issueKey, type KeyIssue } from './application-keys.ts';
import { insertApplication, type StoredApplication } from './application-store.ts';

export interface CreatedApplication {
  application: StoredApplication;
  /** In clear, for the one answer that shows it. */
  key: string;
}

/** What a client must not decide: kept apart from the request, whose unknown members are unchecked. */
export interface Origin extends Partial<KeyIssue> {
  id?: string;
}

/**
 * Writes the application and its key in the caller's transaction, which also records the change.
 * Throws a validation error (400) for permissions, rules or an expiry that may not be.
 */
export async function createApplication(
  client: Queryable,
  installation: Installation,
  tenantId: string,
  request: CreateApplicationRequest,
  { id = randomUUID(), created_by = null, key }: Origin = {},
): Promise<CreatedApplication> {
  const { name, type } = request;
  const application = await insertApplication(client, tenantId, {
    id,
    name,
    type,
    ...validateAccess(type, request.permissions, request.rules),
    expires_at: readExpiresAt(request.expires_at),
    created_by,
  });
  if (application === undefined) throw expiryNotInFuture();
  const issue = { created_by, key };
  return { application, key: await issueKey(client, installation, tenantId, id, issue) };
}

/** An application that may manage everything in the tenant. `key`: the bootstrap key, if given. */
export function createManagementApplication(
  client: Queryable,
  installation: Installation,
  tenantId: string,
  { name, key }: { name: string; key?: string | undefined },
): Promise<CreatedApplication> {
  const permissions = listPermissions('management').map(({ type }) => type);
  const request = { name, type: 'management', permissions } as const;
  return createApplication(client, installation, tenantId, request, { key });
}

/** `expires_at` of a request; `null` for never. Throws 400 for what is not a date. */
export function readExpiresAt(text: string | null | undefined): Date | null {
  if (text === undefined || text === null) return null;
  const date = parseExpiresAt(text);
  if (date === undefined) throw fieldError('expires_at', 'Must be an ISO 8601 date or date-time');
  return date;
}

/** Only the database's clock knows, so this is found out by the writing statement. */
export function expiryNotInFuture(): ApiError {
  return fieldError('expires_at', 'Must be in the future');
}
