/** What the configuration of a reactor must be to satisfy its formula, and what its code gets of it. */
import type { ConfigurationDeclaration } from '../api/reactor-formulas.ts';
import type { FieldErrors } from '../errors.ts';
import { castValue, type Scalar } from './cast-value.ts';
import type { ConfigurationValues } from './sealed-configuration.ts';

/**
 * What keeps `values` from satisfying a formula: each declared name must be there, with a value that
 * casts to its type (or null), and no other. Empty when nothing does. Names only what is declared,
 * never a value or a name of the reactor's own.
 */
export function configurationProblems(
  declarations: readonly ConfigurationDeclaration[],
  values: ConfigurationValues,
): FieldErrors {
  const problems: FieldErrors = {};
  for (const { name, type } of declarations) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value === undefined) problems[`configuration.${name}`] = ['This name is required'];
    else if (value !== null && castValue(type, value) === undefined) {
      problems[`configuration.${name}`] = [`Must be the text of a ${type}`];
    }
  }
  const declared = new Set(declarations.map(({ name }) => name));
  if (Object.keys(values).some((name) => !declared.has(name))) {
    problems.configuration = ['Contains a name that the formula does not declare'];
  }
  return problems;
}

/**
 * The configuration as the code gets it. With declarations: the declared names with values of their
 * types; a value that does not fit is left out, so ask `configurationProblems` first. Without
 * (`undefined`, a reactor with code of its own): the texts as they are.
 */
export function castConfiguration(
  declarations: readonly ConfigurationDeclaration[] | undefined,
  values: ConfigurationValues,
): Record<string, Scalar | null> {
  if (declarations === undefined) return { ...values };
  const entries = declarations.flatMap(({ name, type }): [string, Scalar | null][] => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value === undefined) return [];
    const cast = value === null ? null : castValue(type, value);
    return cast === undefined ? [] : [[name, cast]];
  });
  // Defines own members one by one: no name is ever taken for a prototype.
  return Object.fromEntries(entries);
}
