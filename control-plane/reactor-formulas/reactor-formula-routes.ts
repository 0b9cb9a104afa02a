/** `/reactor-formulas`: code that several reactors share (facts 9.1). */
import { randomUUID } from 'node:crypto';
import type Router from '@koa/router';
import { toPage } from '../../shared/api/pagination.ts';
import * as api from '../../shared/api/reactor-formulas.ts';
import type { ChangedEntity } from '../../shared/config-entries/config-change.ts';
import { ApiError } from '../../shared/errors.ts';
import { readPaging } from '../../shared/http/list-parameters.ts';
import { applyChange } from '../apply-change.ts';
import type { ControlPlane } from '../control-plane.ts';
import { readNamePattern } from '../name-pattern.ts';
import { isFormulaUsed } from '../reactors/reactor-store.ts';
import type { RequestState } from '../request-state.ts';
import { checkCode } from '../scripts/check-code.ts';
import { addOperation, type Carry, notFound } from '../serve-operation.ts';
import { readDeclarations } from './declarations.ts';
import * as store from './reactor-formula-store.ts';

export function addReactorFormulaRoutes(router: Router<RequestState>, plane: ControlPlane): void {
  addOperation(router, plane, api.createReactorFormula, create(plane));
  addOperation(router, plane, api.listReactorFormulas, list(plane));
  addOperation(router, plane, api.getReactorFormula, get(plane));
  addOperation(router, plane, api.updateReactorFormula, update(plane));
  addOperation(router, plane, api.deleteReactorFormula, remove(plane));
}

const changed = (id: string): ChangedEntity => ({ kind: 'reactor_formula', id });

function create(plane: ControlPlane): Carry<typeof api.createReactorFormula> {
  return async ({ caller, body }) => {
    const { tenant_id, application_id } = caller;
    const values = readFormula(body);
    await checkCode(plane.codeChecks, tenant_id, values.code);
    const id = body.id?.toLowerCase() ?? randomUUID();
    return applyChange(plane, caller, changed(id), async (client) => {
      const created = await store.insertFormula(client, tenant_id, id, values, application_id);
      if (created === undefined) {
        throw new ApiError('conflict', 'There is a formula with this id already');
      }
      return created;
    });
  };
}

function list({ pool }: ControlPlane): Carry<typeof api.listReactorFormulas> {
  return async ({ caller, query }) => {
    const paging = readPaging(query);
    const pattern = readNamePattern(query);
    const found = await store.listFormulas(pool, caller.tenant_id, pattern, paging);
    return toPage(found.formulas, found.total, paging);
  };
}

function get({ pool }: ControlPlane): Carry<typeof api.getReactorFormula> {
  return async ({ caller, params }) =>
    (await store.findFormula(pool, caller.tenant_id, params.id)) ?? notFound();
}

/**
 * Reactors in use are not asked whether their configuration still fits: a name could never be added
 * otherwise, since a reactor cannot configure what its formula does not declare yet. One that does
 * not fit refuses its calls until it is configured anew.
 */
function update(plane: ControlPlane): Carry<typeof api.updateReactorFormula> {
  return async ({ caller, params: { id }, body }) => {
    const { tenant_id, application_id } = caller;
    const values = readFormula(body);
    await checkCode(plane.codeChecks, tenant_id, values.code);
    return applyChange(
      plane,
      caller,
      changed(id),
      async (client) =>
        (await store.updateFormula(client, tenant_id, id, values, application_id)) ?? notFound(),
    );
  };
}

/** Changes of a tenant follow one another, so no reactor comes to use it in the meantime. */
function remove(plane: ControlPlane): Carry<typeof api.deleteReactorFormula> {
  return ({ caller, params: { id } }) =>
    applyChange(plane, caller, changed(id), async (client) => {
      const { tenant_id } = caller;
      if (await isFormulaUsed(client, tenant_id, id)) {
        throw new ApiError('conflict', 'A reactor uses this formula');
      }
      if (!(await store.deleteFormula(client, tenant_id, id))) notFound();
      return undefined;
    });
}

/** Everything but the code itself. Official formulas are not a tenant's to make (design section 12). */
function readFormula(
  body: api.CreateReactorFormulaRequest | api.UpdateReactorFormulaRequest,
): store.FormulaValues {
  if (body.type === 'official') {
    throw new ApiError('forbidden', 'Only private formulas can be created or changed');
  }
  const { name, description = null, icon = null, code } = body;
  return { name, description, icon, code, ...readDeclarations(body) };
}
