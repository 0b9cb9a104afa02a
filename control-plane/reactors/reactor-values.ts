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

/**
 * The configuration that a reactor gets. Throws 400 unless the formula is the tenant's and the configuration
 * satisfies it. With a formula it is required (design section 12), also where that declares nothing yet.
 */
export async function checkConfiguration(
  client: Queryable,
  tenantId: string,
  formulaId: string | null,
  given: ConfigurationValues | null | undefined,
): Promise<ConfigurationValues> {
  // Code of its own declares nothing, so everything satisfies it.
  if (formulaId === null) return given ?? {};
  const formula = await findFormula(client, tenantId, formulaId);
  if (formula === undefined) throw fieldError('formula.id', 'There is no such reactor formula');
  if (given == null) {
    const isBare = formula.configuration.length === 0;
    const hint = isBare ? ': {}, as this formula declares none' : '';
    throw fieldError('configuration', `This member is required${hint}`);
  }
  const problems = configurationProblems(formula.configuration, given);
  if (Object.keys(problems).length > 0) throw validationError(problems);
  return given;
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
