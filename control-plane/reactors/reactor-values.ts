/**
 * What the members of reactor requests may say, judged in the transaction that writes: behind the
 * tenant's lock no formula disappears meanwhile.
 */
import type { CreateReactorRequest } from '../../shared/api/reactors.ts';
import { fieldError, validationError } from '../../shared/errors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { configurationProblems } from '../../shared/reactors/reactor-configuration.ts';
import type { ConfigurationValues } from '../../shared/reactors/sealed-configuration.ts';
import { findFormula } from '../reactor-formulas/reactor-formula-store.ts';

/** How long console lines may be shown: long enough to look, too short to be forgotten. */
const DEBUG_HOURS_MAX = 1;
const HOUR_MS = 3_600_000;

/** What a reactor runs: a formula's code or its own, never both, never neither. */
export type CodeSource = { formula_id: string; code: null } | { formula_id: null; code: string };

/** Throws 400 unless the request names exactly one. */
export function readCodeSource({ formula, code }: CreateReactorRequest): CodeSource {
  const formula_id = formula?.id.toLowerCase();
  if (formula_id !== undefined && code == null) return { formula_id, code: null };
  if (formula_id === undefined && code != null) return { formula_id: null, code };
  const message = 'Either formula.id or code is required, not both';
  throw validationError({ 'formula.id': [message], code: [message] });
}

/** Throws 400 unless the formula is the tenant's and the configuration satisfies it. */
export async function checkConfiguration(
  client: Queryable,
  tenantId: string,
  formulaId: string | null,
  configuration: ConfigurationValues,
): Promise<void> {
  // Code of its own declares nothing, so everything satisfies it.
  if (formulaId === null) return;
  const formula = await findFormula(client, tenantId, formulaId);
  if (formula === undefined) throw fieldError('formula.id', 'There is no such reactor formula');
  const problems = configurationProblems(formula.configuration, configuration);
  if (Object.keys(problems).length > 0) throw validationError(problems);
}

/** The configuration of a request that replaces it: required for a formula (design section 12). */
export function readConfiguration(
  configuration: ConfigurationValues | null | undefined,
  { formula_id }: { formula_id: string | null },
): ConfigurationValues {
  if (configuration != null) return configuration;
  if (formula_id !== null) throw fieldError('configuration', 'This member is required');
  return {};
}

/** `debug_until` of a request, by the database's clock. Throws 400 for the past and for too long. */
export async function readDebugUntil(
  client: Queryable,
  text: string | null | undefined,
): Promise<Date | null> {
  if (text == null) return null;
  const until = new Date(text);
  const { rows } = await client.query<{ now: Date }>('SELECT clock_now() AS now');
  // NaN, which a leap second is here, is not in the future either.
  const ahead = until.getTime() - (rows[0]?.now.getTime() ?? Number.NaN);
  if (ahead > 0 && ahead <= DEBUG_HOURS_MAX * HOUR_MS) return until;
  throw fieldError('debug_until', 'Must be in the future and at most an hour ahead');
}
