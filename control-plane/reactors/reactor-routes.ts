/** `/reactors`: code with its configuration, ready to be called by applications (spec: Reactors). */
import { randomUUID } from 'node:crypto';
import type Router from '@koa/router';
import { toPage } from '../../shared/api/pagination.ts';
import * as api from '../../shared/api/reactors.ts';
import type { ChangedEntity } from '../../shared/config-entries/config-change.ts';
import { readPaging } from '../../shared/http/list-parameters.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { readApplicationId } from '../applications/acting-application.ts';
import { applyChange } from '../apply-change.ts';
import type { ControlPlane } from '../control-plane.ts';
import { readListFilter } from '../list-filter.ts';
import type { RequestState } from '../request-state.ts';
import { checkCode } from '../scripts/check-code.ts';
import { addOperation, type Carry, notFound } from '../serve-operation.ts';
import { patchReactor, replaceReactor, sealChecked } from './change-reactor.ts';
import { answerReactors } from './reactor-answer.ts';
import * as store from './reactor-store.ts';
import { readCodeSource } from './reactor-values.ts';

export function addReactorRoutes(router: Router<RequestState>, plane: ControlPlane): void {
  addOperation(router, plane, api.createReactor, create(plane));
  addOperation(router, plane, api.listReactors, list(plane));
  addOperation(router, plane, api.getReactor, get(plane));
  addOperation(router, plane, api.updateReactor, update(plane));
  addOperation(router, plane, api.patchReactor, patch(plane));
  addOperation(router, plane, api.deleteReactor, remove(plane));
}

const changed = (id: string): ChangedEntity => ({ kind: 'reactor', id });

function create(plane: ControlPlane): Carry<typeof api.createReactor> {
  return async ({ caller, body }) => {
    const { tenant_id, application_id: created_by } = caller;
    const source = readCodeSource(body);
    await prepare(plane, tenant_id, source.code);
    const id = randomUUID();
    return applyChange(plane, caller, changed(id), async (client) => {
      const reactor = { id, tenant_id, ...source };
      const values = {
        name: body.name,
        ...source,
        configuration_sealed: await sealChecked(
          client,
          plane.dataKeys,
          reactor,
          body.configuration,
        ),
        application_id: await readApplicationId(client, tenant_id, body.application),
        debug_until: null,
      };
      const row = await store.insertReactor(client, tenant_id, id, values, created_by);
      return answer(plane, client, row);
    });
  };
}

function list({ pool, dataKeys }: ControlPlane): Carry<typeof api.listReactors> {
  return async ({ caller: { tenant_id }, query }) => {
    const paging = readPaging(query);
    const filter = readListFilter(query);
    const { reactors, total } = await store.listReactors(pool, tenant_id, filter, paging);
    return toPage(await answerReactors(pool, dataKeys, tenant_id, reactors), total, paging);
  };
}

function get(plane: ControlPlane): Carry<typeof api.getReactor> {
  return async ({ caller, params }) => {
    const row = await store.findReactor(plane.pool, caller.tenant_id, params.id);
    return answer(plane, plane.pool, row);
  };
}

function update(plane: ControlPlane): Carry<typeof api.updateReactor> {
  return async ({ caller, params: { id }, body }) => {
    const { tenant_id, application_id } = caller;
    await prepare(plane, tenant_id, body.code);
    return applyChange(plane, caller, changed(id), async (client) => {
      const current = (await store.lockReactor(client, tenant_id, id)) ?? notFound();
      const values = await replaceReactor(client, plane.dataKeys, current, body);
      const row = await store.updateReactor(client, tenant_id, id, values, application_id);
      return answer(plane, client, row);
    });
  };
}

function patch(plane: ControlPlane): Carry<typeof api.patchReactor> {
  return async ({ caller, params: { id }, body }) => {
    const { tenant_id, application_id } = caller;
    await prepare(plane, tenant_id, body.code);
    return applyChange(plane, caller, changed(id), async (client) => {
      const current = (await store.lockReactor(client, tenant_id, id)) ?? notFound();
      const values = await patchReactor(client, plane.dataKeys, current, body);
      await store.updateReactor(client, tenant_id, id, values, application_id);
      return undefined;
    });
  };
}

function remove(plane: ControlPlane): Carry<typeof api.deleteReactor> {
  return ({ caller, params: { id } }) =>
    applyChange(plane, caller, changed(id), async (client) => {
      if (!(await store.deleteReactor(client, caller.tenant_id, id))) notFound();
      return undefined;
    });
}

/**
 * What must not wait inside a transaction: the check of the code, if there is any, and the tenant's
 * keys. A tenant without keys is being deleted, which the transaction finds out.
 */
async function prepare(
  { codeChecks, dataKeys }: ControlPlane,
  tenantId: string,
  code: string | null | undefined,
): Promise<void> {
  if (code != null) await checkCode(codeChecks, tenantId, code);
  await dataKeys.forTenant(tenantId).catch(() => undefined);
}

async function answer(
  { dataKeys }: ControlPlane,
  db: Queryable,
  row: store.ReactorRow | undefined,
): Promise<api.Reactor> {
  if (row === undefined) return notFound();
  const [found] = await answerReactors(db, dataKeys, row.tenant_id, [row]);
  return found ?? notFound();
}
