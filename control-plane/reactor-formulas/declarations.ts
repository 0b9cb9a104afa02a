/**
 * What a formula declares: the names that its reactors configure and the arguments that callers give.
 * Checks what a pattern cannot say, so that no declaration contradicts another or names a prototype.
 */
import type {
  ConfigurationDeclaration,
  RequestParameter,
} from '../../shared/api/reactor-formulas.ts';
import { type FieldErrors, validationError } from '../../shared/errors.ts';

/** Segments through which an object would be reached that is not the arguments' own. */
const RESERVED = new Set(['__proto__', 'constructor', 'prototype']);

export interface Declarations {
  configuration: ConfigurationDeclaration[];
  request_parameters: RequestParameter[];
}

/** The declarations of a request in full. Throws 400 that names the wrong ones by their index. */
export function readDeclarations(body: {
  configuration?: ConfigurationDeclaration[] | null;
  request_parameters?: RequestParameter[] | null;
}): Declarations {
  const configuration = body.configuration ?? [];
  const request_parameters = body.request_parameters ?? [];
  const errors = {
    ...nameErrors('configuration', configuration),
    ...nameErrors('request_parameters', request_parameters),
  };
  if (Object.keys(errors).length > 0) throw validationError(errors);
  return {
    configuration: configuration.map(declared),
    request_parameters: request_parameters.map((parameter) => ({
      ...declared(parameter),
      optional: parameter.optional ?? false,
    })),
  };
}

/** The documented members alone; a description that is null is none. */
function declared({ name, description, type }: ConfigurationDeclaration): ConfigurationDeclaration {
  return { name, ...(description == null ? {} : { description }), type };
}

function nameErrors(list: string, declarations: readonly { name: string }[]): FieldErrors {
  const errors: FieldErrors = {};
  const names = new Set(declarations.map(({ name }) => name));
  const seen = new Set<string>();
  declarations.forEach(({ name }, index) => {
    const problem = seen.has(name) ? 'Is declared twice' : nameProblem(name, names);
    if (problem !== undefined) errors[`${list}.${index}.name`] = [problem];
    seen.add(name);
  });
  return errors;
}

function nameProblem(name: string, names: ReadonlySet<string>): string | undefined {
  const segments = name.split('.');
  if (segments.includes('')) return 'Must not have two dots in a row';
  if (segments.some((segment) => RESERVED.has(segment))) {
    return `Must not contain ${[...RESERVED].join(', ')}`;
  }
  // A value cannot be a text and hold a member at once.
  const isInside = segments.some((_, depth) => names.has(segments.slice(0, depth).join('.')));
  return isInside ? 'Lies inside another declared name' : undefined;
}
