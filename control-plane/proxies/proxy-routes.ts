/** `/proxies`: where requests are forwarded to, with transforms (spec: Proxies). */
import { randomUUID } from 'node:crypto';
import type Router from '@koa/router';
import { toPage } from '../../shared/api/pagination.ts';
import * as api from '../../shared/api/proxies.ts';
import type { ChangedEntity } from '../../shared/config-entries/config-change.ts';
import { readPaging } from '../../shared/http/list-parameters.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { applyChange } from '../apply-change.ts';
import type { ControlPlane } from '../control-plane.ts';
import { readListFilter } from '../list-filter.ts';
import type { RequestState } from '../request-state.ts';
import { checkCode } from '../scripts/check-code.ts';
import { addOperation, type Carry, notFound } from '../serve-operation.ts';
import { patchProxy, replaceProxy } from './change-proxy.ts';
import { checkDestination } from './destination.ts';
import { refuseLaterMembers } from './later-members.ts';
import { answerProxies } from './proxy-answer.ts';
import { issueProxyKey, revokeProxyKey } from './proxy-key.ts';
import * as store from './proxy-store.ts';

export function addProxyRoutes(router: Router<RequestState>, plane: ControlPlane): void {
  addOperation(router, plane, api.createProxy, create(plane));
  addOperation(router, plane, api.listProxies, list(plane));
  addOperation(router, plane, api.getProxy, get(plane));
  addOperation(router, plane, api.updateProxy, update(plane));
  addOperation(router, plane, api.patchProxy, patch(plane));
  addOperation(router, plane, api.deleteProxy, remove(plane));
}

const changed = (id: string): ChangedEntity => ({ kind: 'proxy', id });

function create(plane: ControlPlane): Carry<typeof api.createProxy> {
  return async ({ caller, body }) => {
    const { tenant_id, application_id: created_by } = caller;
    await prepare(plane, tenant_id, body);
    const id = randomUUID();
    return applyChange(plane, caller, changed(id), async (client) => {
      const values = {
        ...(await replaceProxy(client, plane.dataKeys, { id, tenant_id }, body)),
        key_sealed: await issueProxyKey(client, plane, tenant_id, id),
        created_by,
      };
      return answer(plane, client, await store.insertProxy(client, tenant_id, id, values));
    });
  };
}

function list({ pool, dataKeys }: ControlPlane): Carry<typeof api.listProxies> {
  return async ({ caller: { tenant_id }, query }) => {
    const paging = readPaging(query);
    const filter = readListFilter(query);
    const { proxies, total } = await store.listProxies(pool, tenant_id, filter, paging);
    return toPage(await answerProxies(pool, dataKeys, tenant_id, proxies), total, paging);
  };
}

function get(plane: ControlPlane): Carry<typeof api.getProxy> {
  return async ({ caller, params }) => {
    const row = await store.findProxy(plane.pool, caller.tenant_id, params.id);
    return answer(plane, plane.pool, row);
  };
}

function update(plane: ControlPlane): Carry<typeof api.updateProxy> {
  return async ({ caller, params: { id }, body }) => {
    const { tenant_id, application_id } = caller;
    await prepare(plane, tenant_id, body);
    return applyChange(plane, caller, changed(id), async (client) => {
      const current = (await store.lockProxy(client, tenant_id, id)) ?? notFound();
      const values = await replaceProxy(client, plane.dataKeys, current, body);
      const row = await store.updateProxy(client, tenant_id, id, values, application_id);
      return answer(plane, client, row);
    });
  };
}

function patch(plane: ControlPlane): Carry<typeof api.patchProxy> {
  return async ({ caller, params: { id }, body }) => {
    const { tenant_id, application_id } = caller;
    await prepare(plane, tenant_id, body);
    return applyChange(plane, caller, changed(id), async (client) => {
      const current = (await store.lockProxy(client, tenant_id, id)) ?? notFound();
      const values = await patchProxy(client, plane.dataKeys, current, body);
      await store.updateProxy(client, tenant_id, id, values, application_id);
      return undefined;
    });
  };
}

function remove(plane: ControlPlane): Carry<typeof api.deleteProxy> {
  return ({ caller, params: { id } }) =>
    applyChange(plane, caller, changed(id), async (client) => {
      const { tenant_id } = caller;
      if (!(await store.deleteProxy(client, tenant_id, id))) notFound();
      await revokeProxyKey(client, tenant_id, id);
      return undefined;
    });
}

/**
 * What needs no transaction, or must not wait inside one: the destination, the code of the transforms,
 * the tenant's keys. A tenant without keys is being deleted, which the transaction finds out.
 */
async function prepare(
  { egressAllow, codeChecks, dataKeys }: ControlPlane,
  tenantId: string,
  body: api.ProxyRequest | api.PatchProxyRequest,
): Promise<void> {
  refuseLaterMembers(body);
  if (body.destination_url !== undefined) checkDestination(body.destination_url, egressAllow);
  for (const name of ['request_transform', 'response_transform'] as const) {
    const code = body[name]?.code;
    if (code != null) await checkCode(codeChecks, tenantId, code, `${name}.code`);
  }
  await dataKeys.forTenant(tenantId).catch(() => undefined);
}

async function answer(
  { dataKeys }: ControlPlane,
  db: Queryable,
  row: store.ProxyRow | undefined,
): Promise<api.ProxyAnswer> {
  if (row === undefined) return notFound();
  const [proxy] = await answerProxies(db, dataKeys, row.tenant_id, [row]);
  return proxy ?? notFound();
}
