/** `/applications`: who may use the API and how (facts 3). */
import { randomUUID } from 'node:crypto';
import type Router from '@koa/router';
import { APPLICATION_TYPES, isApplicationType } from '../../shared/access/permissions.ts';
import { validateAccess } from '../../shared/access/validate-access.ts';
import * as api from '../../shared/api/applications.ts';
import { toPage } from '../../shared/api/pagination.ts';
import type { ChangedEntity } from '../../shared/config-entries/config-change.ts';
import { fieldError } from '../../shared/errors.ts';
import { readIds, readPaging, readValues } from '../../shared/http/list-parameters.ts';
import type { QueryParams } from '../../shared/http/query.ts';
import { applyChange } from '../apply-change.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { RequestState } from '../request-state.ts';
import { addOperation, type Carry, isUuid, notFound } from '../serve-operation.ts';
import { issueKey, revokeKeys } from './application-keys.ts';
import * as store from './application-store.ts';
import { createApplication, expiryNotInFuture, readExpiresAt } from './create-application.ts';

export function addApplicationRoutes(router: Router<RequestState>, plane: ControlPlane): void {
  addOperation(router, plane, api.createApplication, create(plane));
  addOperation(router, plane, api.listApplications, list(plane));
  addOperation(router, plane, api.getApplicationByKey, getByKey(plane));
  addOperation(router, plane, api.getApplication, get(plane));
  addOperation(router, plane, api.updateApplication, update(plane));
  addOperation(router, plane, api.deleteApplication, remove(plane));
  addOperation(router, plane, api.regenerateKey, regenerate(plane));
}

const changed = (id: string): ChangedEntity => ({ kind: 'application', id });

function create(plane: ControlPlane): Carry<typeof api.createApplication> {
  return async ({ caller, body }) => {
    const { tenant_id, application_id: created_by } = caller;
    const origin = { id: randomUUID(), created_by };
    return applyChange(plane, caller, changed(origin.id), async (client) => {
      const { installation } = plane;
      const made = await createApplication(client, installation, tenant_id, body, origin);
      return { ...made.application, key: made.key };
    });
  };
}

function list({ pool }: ControlPlane): Carry<typeof api.listApplications> {
  return async ({ caller, query }) => {
    const paging = readPaging(query);
    // What is no UUID is no application's id: it matches nothing.
    const ids = readIds(query)
      ?.map((id) => id.toLowerCase())
      .filter(isUuid);
    const filter = { ids, types: readTypes(query) };
    const found = await store.listApplications(pool, caller.tenant_id, filter, paging);
    return toPage(found.applications, found.total, paging);
  };
}

function readTypes(query: QueryParams): string[] | undefined {
  const types = readValues(query, 'type');
  if (types === undefined || types.every(isApplicationType)) return types;
  throw fieldError('type', `Must be one of ${APPLICATION_TYPES.join(', ')}`);
}

function getByKey({ pool }: ControlPlane): Carry<typeof api.getApplicationByKey> {
  return async ({ caller }) => {
    const found = await store.findApplication(pool, caller.tenant_id, caller.application_id);
    return found ?? notFound();
  };
}

function get({ pool }: ControlPlane): Carry<typeof api.getApplication> {
  return async ({ caller, params }) => {
    const found = await store.findApplication(pool, caller.tenant_id, params.id);
    return found ?? notFound();
  };
}

/** PUT replaces; only `expires_at` is kept when absent, lest a rename made a key live forever. */
function update(plane: ControlPlane): Carry<typeof api.updateApplication> {
  return ({ caller, params: { id }, body }) =>
    applyChange(plane, caller, changed(id), async (client) => {
      const { tenant_id, application_id } = caller;
      const current = await store.lockApplication(client, tenant_id, id);
      if (current === undefined) return notFound();
      const { expires_at } = body;
      const values = {
        name: body.name,
        ...validateAccess(current.type, body.permissions, body.rules),
        expires_at: expires_at === undefined ? current.expires_at : readExpiresAt(expires_at),
      };
      const updated = await store.updateApplication(client, tenant_id, id, values, application_id);
      if (updated === undefined) throw expiryNotInFuture();
      return updated;
    });
}

function remove(plane: ControlPlane): Carry<typeof api.deleteApplication> {
  return ({ caller, params: { id } }) =>
    applyChange(plane, caller, changed(id), async (client) => {
      const { tenant_id } = caller;
      const wasThere = await store.deleteApplication(client, tenant_id, id);
      if (!wasThere) notFound();
      await revokeKeys(client, tenant_id, id);
      return undefined;
    });
}

function regenerate(plane: ControlPlane): Carry<typeof api.regenerateKey> {
  return ({ caller, params: { id } }) =>
    applyChange(plane, caller, changed(id), async (client) => {
      const { tenant_id, application_id: created_by } = caller;
      const application = await store.touchApplication(client, tenant_id, id, created_by);
      if (application === undefined) return notFound();
      await revokeKeys(client, tenant_id, id);
      const key = await issueKey(client, plane.installation, tenant_id, id, { created_by });
      return { ...application, key };
    });
}
