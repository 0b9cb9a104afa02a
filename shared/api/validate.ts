/**
 * Checks values against the contract's schemas with compiled functions. A value that does not fit
 * becomes one validation error that names every wrong member by its path and never repeats a value,
 * nor a name that the client made up.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import type { Static, TSchema } from 'typebox';
import { type FieldErrors, validationError } from '../errors.ts';

/** Facts 2.1: how a value of the wrong JSON type is reported; what it should be is told behind it. */
const WRONG_TYPE = 'Deserialization error, invalid input.';
const TYPES: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  object: 'an object',
  string: 'a text',
};

// One error per check: reporting all would let an array of a megabyte make half a million errors.
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, ownProperties: true });
ajvFormats.default(ajv, ['uuid', 'date-time']);

interface SchemaNode {
  properties?: Record<string, TSchema>;
  items?: TSchema;
  required?: string[];
}

/** Returns the value, typed, or throws a validation error (400). Unknown members are let through. */
export type Validator<T> = (value: unknown) => T;

/** Compiles `schema` once. The root must be an object schema: bodies are. */
export function compileValidator<S extends TSchema>(schema: S): Validator<Static<S>> {
  const isValid = ajv.compile<Static<S>>(schema);
  let members: MemberChecks | undefined;
  return (value) => {
    if (isValid(value)) return value;
    members ??= compileMembers(schema);
    throw validationError(findErrors(value, isValid, members));
  };
}

interface MemberChecks {
  required: string[];
  checks: { name: string; schema: SchemaNode; isValid: ValidateFunction }[];
}

/** A check of each member by itself, for the request that is wrong in several places. */
function compileMembers(schema: SchemaNode): MemberChecks {
  const checks = Object.entries(schema.properties ?? {}).map(([name, member]) => ({
    name,
    schema: member as SchemaNode,
    isValid: ajv.compile(member),
  }));
  return { required: schema.required ?? [], checks };
}

function findErrors(value: unknown, whole: ValidateFunction, members: MemberChecks): FieldErrors {
  const errors: FieldErrors = {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { body: ['A JSON object is required'] };
  }
  const object = value as Record<string, unknown>;
  for (const { name, schema, isValid } of members.checks) {
    const isMissing = !Object.hasOwn(object, name) || object[name] === null;
    if (isMissing && members.required.includes(name)) {
      errors[name] = ['This member is required'];
    } else if (!Object.hasOwn(object, name)) {
      // Left out, as it may be.
    } else if (!isValid(object[name])) {
      addError(errors, name, schema, isValid.errors?.[0]);
    }
  }
  // What no single member is to blame for.
  if (Object.keys(errors).length === 0) addError(errors, 'body', {}, whole.errors?.[0]);
  return errors;
}

function addError(
  errors: FieldErrors,
  name: string,
  schema: SchemaNode,
  error: ErrorObject | undefined,
): void {
  const pointer = error?.instancePath ?? '';
  const known = declaredPath(schema, pointer);
  const isNamed = known.length === segmentsOf(pointer).length;
  const path = [name, ...known];
  if (error?.keyword === 'required') path.push(String(error.params.missingProperty));
  errors[path.join('.')] = [messageOf(error), ...expectedType(error, isNamed)];
}

/** The part of a JSON pointer that the schema knows: indexes and declared names, no made-up keys. */
function declaredPath(schema: SchemaNode, pointer: string): string[] {
  const known: string[] = [];
  let node: SchemaNode | undefined = schema;
  for (const segment of segmentsOf(pointer)) {
    const next: SchemaNode | undefined =
      node?.items ??
      (Object.hasOwn(node?.properties ?? {}, segment) ? node?.properties?.[segment] : undefined);
    if (next === undefined) break;
    known.push(segment);
    node = next;
  }
  return known;
}

const segmentsOf = (pointer: string): string[] => pointer.split('/').slice(1);

function messageOf(error: ErrorObject | undefined): string {
  const { keyword = '', params = {} } = error ?? {};
  switch (keyword) {
    case 'required':
      return 'This member is required';
    case 'minLength':
    case 'minItems':
    case 'minProperties':
      return `At least ${params.limit} ${unitOf(keyword)} required`;
    case 'maxLength':
    case 'maxItems':
    case 'maxProperties':
      return `At most ${params.limit} ${unitOf(keyword)} allowed`;
    case 'minimum':
    case 'maximum':
      return `Must be ${params.comparison} ${params.limit}`;
    case 'enum':
      return `Must be one of ${listed(params.allowedValues)}`;
    case 'pattern':
      return 'Contains characters that are not allowed here';
    case 'propertyNames':
      return 'A name contains characters that are not allowed, or too many';
    case 'format':
      return `Must be a ${params.format}`;
    default:
      return WRONG_TYPE;
  }
}

/** Words of a closed list; null, which a list may have besides, is no word. */
function listed(values: readonly (string | null)[]): string {
  const words = values.filter((value) => value !== null).join(', ');
  return values.includes(null) ? `${words} or null` : words;
}

/**
 * What stands behind `WRONG_TYPE`, where one type is asked for; that null would do helps nobody. `isNamed`: the
 * path is the value's own, not that of a map which has it under a name that the client made up.
 */
function expectedType(error: ErrorObject | undefined, isNamed: boolean): string[] {
  if (error?.keyword !== 'type') return [];
  const [type = '', ...others] = [error.params.type].flat().filter((name) => name !== 'null');
  const words = others.length === 0 ? TYPES[type] : undefined;
  if (words === undefined) return [];
  return [isNamed ? `Must be ${words}` : `Each value must be ${words}`];
}

function unitOf(keyword: string): string {
  if (keyword.endsWith('Length')) return 'characters are';
  return keyword.endsWith('Items') ? 'entries are' : 'members are';
}
