/** The application that the code of a reactor or proxy acts as. */
import { fieldError } from '../../shared/errors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { findApplication, listApplications, type StoredApplication } from './application-store.ts';

interface Reference {
  id?: string | null;
}

/**
 * The id of the application that a request names; `null` for none. Throws 400 unless it is a public
 * or private one of this tenant: a management key must never come near customer code. Belongs into
 * the transaction that writes: behind the tenant's lock no application disappears meanwhile.
 */
export async function readApplicationId(
  client: Queryable,
  tenantId: string,
  application: Reference | null | undefined,
): Promise<string | null> {
  const id = application?.id?.toLowerCase();
  if (id === undefined) return null;
  const found = await findApplication(client, tenantId, id);
  if (found === undefined || found.type === 'management') {
    throw fieldError('application.id', 'There is no such public or private application');
  }
  return id;
}

/**
 * As a request names it: by reference, or by `application_id`, as answers show it, so that what was read can be written
 * back. `undefined` when it says neither; throws 400 when it says both, and not the same.
 */
export function namedApplication({
  application,
  application_id: id,
}: {
  application?: Reference | null;
  application_id?: string | null;
}): Reference | null | undefined {
  if (id === undefined) return application;
  const named = id === null ? null : { id };
  if (application === undefined) return named;
  const isSame = (application?.id ?? null)?.toLowerCase() === id?.toLowerCase();
  if (!isSame) throw fieldError('application_id', 'Names another application than application.id');
  return named;
}

/** The same under a merge patch: what it does not change is not judged again. */
export async function patchApplicationId(
  client: Queryable,
  { tenant_id, application_id }: { tenant_id: string; application_id: string | null },
  patch: Reference | null | undefined,
): Promise<string | null> {
  if (patch === undefined || (patch !== null && patch.id === undefined)) return application_id;
  return readApplicationId(client, tenant_id, patch);
}

/** Those of the rows' applications that are still there, and have not expired, by id. */
export async function findActingApplications(
  db: Queryable,
  tenantId: string,
  rows: readonly { application_id: string | null }[],
): Promise<Map<string, StoredApplication>> {
  const ids = [...new Set(rows.flatMap(({ application_id }) => application_id ?? []))];
  if (ids.length === 0) return new Map();
  const filter = { ids, types: undefined };
  const paging = { page: 1, size: ids.length };
  const { applications } = await listApplications(db, tenantId, filter, paging);
  return new Map(applications.map((application) => [application.id, application]));
}
