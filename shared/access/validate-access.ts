/**
 * Checks the permissions and access rules that a client wants an application to have (facts 3.2 and
 * 3.3) and brings them into their stored form. It must name what is wrong without repeating it.
 */
import { type FieldErrors, validationError } from '../errors.ts';
import { nearName } from '../near-name.ts';
import { type AccessGrants, type AccessRule, TRANSFORMS, type Transform } from './access-rules.ts';
import { CONTAINER_PROBLEM, normaliseContainer } from './containers.ts';
import {
  type ApplicationType,
  isAllowedFor,
  isPermission,
  isTokenPermission,
  listPermissions,
  type Permission,
} from './permissions.ts';

/** Entries of one permission list (facts 0.2). */
export const PERMISSIONS_MAX = 50;

/** Rules of one application: each may cost a comparison per token operation. */
export const ACCESS_RULES_MAX = 50;

/** Code units of a rule's description, as of the other descriptions (facts 0.2). */
export const RULE_DESCRIPTION_LENGTH_MAX = 400;

/** Postgres integer, so that every accepted priority can be stored and compared. */
export const RULE_PRIORITY_MAX = 2_147_483_647;

/** Stands in for a refused priority, so that two of them are not called repeated as well. */
const NO_PRIORITY = 0;

/** Facts 2.1: how a value of the wrong JSON type is reported. */
const WRONG_TYPE = 'Deserialization error, invalid input.';

type Report = (path: string, message: string) => void;

/**
 * Members as they came in the request body; absent and null mean none. Throws a validation error
 * with paths such as `permissions`, `rules`, `rules.0.container`. Repeated permissions are kept once.
 */
export function validateAccess(
  type: ApplicationType,
  permissions: unknown,
  rules: unknown,
): AccessGrants {
  const errors: FieldErrors = {};
  const report: Report = (path, message) => {
    errors[path] = [...(errors[path] ?? []), message];
  };
  const grants = {
    permissions: readPermissions(permissions ?? [], 'permissions', report, notAllowedFor(type)),
    rules: readRules(type, rules ?? [], report),
  };
  const clean = Object.keys(errors).length === 0;
  if (clean && grants.permissions.length + grants.rules.length === 0) {
    report('permissions', 'At least one permission or access rule is required');
  }
  if (Object.keys(errors).length > 0) throw validationError(errors);
  return grants;
}

/** What is wrong with a known permission in this place, to follow "Entry 3 "; undefined: nothing. */
type Objection = (permission: Permission) => string | undefined;

function readPermissions(
  value: unknown,
  path: string,
  report: Report,
  objectionTo: Objection,
): Permission[] {
  const found = new Set<Permission>();
  if (!Array.isArray(value)) report(path, WRONG_TYPE);
  else if (value.length > PERMISSIONS_MAX) report(path, `At most ${PERMISSIONS_MAX} entries`);
  else {
    for (const [index, name] of value.entries()) {
      const problem = isPermission(name) ? objectionTo(name) : unknown(name, objectionTo);
      if (problem !== undefined) report(path, `Entry ${index + 1} ${problem}`);
      else found.add(name);
    }
  }
  return [...found];
}

/** Names what it was probably meant to be, if that would be accepted in its place. */
function unknown(name: unknown, objectionTo: Objection): string {
  const accepted = listPermissions()
    .map(({ type }) => type)
    .filter((permission) => objectionTo(permission) === undefined);
  const near = typeof name === 'string' ? nearName(name, accepted) : undefined;
  const question = near === undefined ? '' : `did you mean ${near}? `;
  return `is not a known permission: ${question}GET /permissions lists them`;
}

function notAllowedFor(type: ApplicationType): Objection {
  return (permission) =>
    isAllowedFor(permission, type) ? undefined : `is not allowed for applications of type ${type}`;
}

function notInRulesOf(type: ApplicationType): Objection {
  return (permission) =>
    isTokenPermission(permission)
      ? notAllowedFor(type)(permission)
      : 'is not a token permission, and access rules govern tokens only';
}

function readRules(type: ApplicationType, value: unknown, report: Report): AccessRule[] {
  const rules: AccessRule[] = [];
  if (!Array.isArray(value)) {
    report('rules', WRONG_TYPE);
  } else if (value.length > 0 && type === 'management') {
    report('rules', 'Access rules are not allowed for applications of type management');
  } else if (value.length > ACCESS_RULES_MAX) {
    report('rules', `At most ${ACCESS_RULES_MAX} access rules`);
  } else {
    const priorities = new Set<number>();
    for (const [index, source] of value.entries()) {
      const path = `rules.${index}`;
      if (!isObject(source)) {
        report(path, WRONG_TYPE);
        continue;
      }
      const rule = readRule(type, source, path, report);
      if (priorities.has(rule.priority)) report(`${path}.priority`, 'Priorities must be unique');
      if (rule.priority !== NO_PRIORITY) priorities.add(rule.priority);
      rules.push(rule);
    }
  }
  return rules;
}

/** After a report the whole result is thrown away, so a stand-in may take a bad member's place. */
function readRule(
  type: ApplicationType,
  source: Record<string, unknown>,
  path: string,
  report: Report,
): AccessRule {
  const conditions = source.conditions ?? [];
  if (!Array.isArray(conditions) || conditions.length > 0) {
    report(`${path}.conditions`, 'Conditions are allowed in the rules of sessions only');
  }
  const description = readDescription(source.description, `${path}.description`, report);
  return {
    ...(description === undefined ? {} : { description }),
    priority: readPriority(source.priority, `${path}.priority`, report),
    container: readContainer(source.container, `${path}.container`, report),
    transform: readTransform(source.transform, `${path}.transform`, report),
    permissions: readRulePermissions(type, source.permissions, `${path}.permissions`, report),
  };
}

function readDescription(value: unknown, path: string, report: Report): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') report(path, WRONG_TYPE);
  else if (value.length > RULE_DESCRIPTION_LENGTH_MAX) {
    report(path, `At most ${RULE_DESCRIPTION_LENGTH_MAX} characters`);
  } else if (value.includes('\0') || !value.isWellFormed()) {
    report(path, 'NUL and unpaired surrogate characters are not allowed');
  } else return value;
  return undefined;
}

function readPriority(value: unknown, path: string, report: Report): number {
  if (Number.isInteger(value)) {
    const priority = Number(value);
    if (priority >= 1 && priority <= RULE_PRIORITY_MAX) return priority;
  }
  report(path, `An integer from 1 to ${RULE_PRIORITY_MAX} is required`);
  return NO_PRIORITY;
}

function readContainer(value: unknown, path: string, report: Report): string {
  const container = typeof value === 'string' ? normaliseContainer(value) : undefined;
  if (container === undefined) report(path, CONTAINER_PROBLEM);
  return container ?? '/';
}

function readTransform(value: unknown, path: string, report: Report): Transform {
  const transform = TRANSFORMS.find((name) => name === value);
  if (transform === undefined) report(path, `One of ${TRANSFORMS.join(', ')} is required`);
  return transform ?? 'redact';
}

function readRulePermissions(
  type: ApplicationType,
  value: unknown,
  path: string,
  report: Report,
): Permission[] {
  const list = value ?? [];
  if (Array.isArray(list) && list.length === 0) report(path, 'At least one entry is required');
  return readPermissions(list, path, report, notInRulesOf(type));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
