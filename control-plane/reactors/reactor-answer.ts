/** Reactors as they are answered: with their formula, their application and their configuration in clear. */
import type { Reactor } from '../../shared/api/reactors.ts';
import type { DataKeys } from '../../shared/crypto/data-keys.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { openConfiguration } from '../../shared/reactors/sealed-configuration.ts';
import { findActingApplications } from '../applications/acting-application.ts';
import { omitNulls, type RowOf } from '../omit-nulls.ts';
import { findFormulas } from '../reactor-formulas/reactor-formula-store.ts';
import type { ReactorRow } from './reactor-store.ts';

/**
 * The answers to rows of one tenant, in their order. `application` is left out when it is gone. A
 * reactor that was deleted with its formula since its row was read is left out as a whole.
 */
export async function answerReactors(
  db: Queryable,
  dataKeys: DataKeys,
  tenantId: string,
  rows: readonly ReactorRow[],
): Promise<Reactor[]> {
  const formulas = await formulasOf(db, tenantId, rows);
  const applications = await findActingApplications(db, tenantId, rows);
  const answers: Reactor[] = [];
  for (const { formula_id, application_id, configuration_sealed: sealed, ...row } of rows) {
    const formula = formulas.get(formula_id ?? '') ?? null;
    if (formula_id !== null && formula === null) continue;
    const application = applications.get(application_id ?? '') ?? null;
    const owner = { kind: 'reactor', tenant_id: tenantId, id: row.id } as const;
    const configuration = await openConfiguration(dataKeys, owner, sealed);
    const members: RowOf<Reactor> = { ...row, formula, application, configuration };
    answers.push(omitNulls<Reactor>(members));
  }
  return answers;
}

async function formulasOf(db: Queryable, tenantId: string, rows: readonly ReactorRow[]) {
  const ids = [...new Set(rows.flatMap(({ formula_id }) => formula_id ?? []))];
  const formulas = await findFormulas(db, tenantId, ids);
  return new Map(formulas.map((formula) => [formula.id, formula]));
}
