/**
 * The arguments of a reactor after detokenization, held against what its formula declares: required
 * ones are there, declared ones have their type, undeclared ones are gone (spec: Reactors, the ten
 * rules). Pure; own members only, so that no name means a prototype.
 */
import type { RequestParameter } from '../../shared/api/reactor-formulas.ts';
import { type FieldErrors, validationError } from '../../shared/errors.ts';
import { hasExpression } from '../../shared/expressions/compile.ts';
import { castValue } from '../../shared/reactors/cast-value.ts';

const ROOT = 'args';

/**
 * What the code gets as `req.args`. Throws 400 that names declared parameters only, never a value.
 * Without declarations the arguments are passed as they are, an array or a text too.
 */
export function prepareArguments(parameters: readonly RequestParameter[], args: unknown): unknown {
  if (parameters.length === 0) return args ?? null;
  return prepareAll(parameters, args);
}

/**
 * Throws what `prepareArguments` will throw of arguments that are not detokenized yet, as far as they are
 * known: what an expression stands for may be anything.
 */
export function checkArguments(parameters: readonly RequestParameter[], args: unknown): void {
  if (parameters.length === 0 || isExpression(args)) return;
  const known = parameters.filter(({ name }) => !isPending(args, name.split('.')));
  prepareAll(known, args);
}

function prepareAll(parameters: readonly RequestParameter[], args: unknown): JsonObject {
  if (!isObject(args)) {
    const message =
      args === undefined || args === null ? 'This member is required' : 'Must be an object';
    throw validationError({ [ROOT]: [message] });
  }
  const prepared: JsonObject = Object.create(null);
  const errors: FieldErrors = {};
  for (const parameter of parameters) {
    const problem = prepareOne(parameter, args, prepared);
    if (problem !== undefined) errors[`${ROOT}.${parameter.name}`] = [problem];
  }
  if (Object.keys(errors).length > 0) throw validationError(errors);
  return prepared;
}

/** Whether an expression stands where the argument is, or where something is that may hold it. */
function isPending(args: unknown, path: readonly string[]): boolean {
  let node = args;
  for (const name of path) {
    if (!isObject(node) || !Object.hasOwn(node, name)) return isExpression(node);
    node = node[name];
  }
  return isExpression(node);
}

function isExpression(value: unknown): boolean {
  return typeof value === 'string' && hasExpression(value);
}

/** By prototype-less objects: setting a member named `__proto__` makes just that member. */
type JsonObject = Record<string, unknown>;

/** Puts the argument where it is declared; what is wrong with it, if anything. */
function prepareOne(
  { name, type, optional }: RequestParameter,
  args: JsonObject,
  prepared: JsonObject,
): string | undefined {
  const path = name.split('.');
  const value = valueAt(args, path);
  if (value === undefined) return optional === true ? undefined : 'This member is required';
  // An explicit null of an optional parameter stays one; it is no value of a required one.
  const cast = value === null && optional === true ? null : castValue(type, value);
  if (cast === undefined) return `Cannot be cast to ${type}`;
  setAt(prepared, path, cast);
  return undefined;
}

function valueAt(root: JsonObject, path: readonly string[]): unknown {
  let node: unknown = root;
  for (const name of path) {
    if (!isObject(node) || !Object.hasOwn(node, name)) return undefined;
    node = node[name];
  }
  return node;
}

/** A name that is declared inside of another one's value was never found: it has no place. */
function setAt(root: JsonObject, path: readonly string[], value: unknown): void {
  let node = root;
  for (const name of path.slice(0, -1)) {
    const next = node[name] ?? Object.create(null);
    node[name] = next;
    node = next as JsonObject;
  }
  node[path.at(-1) ?? ''] = value;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
