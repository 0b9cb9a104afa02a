/**
 * A token's expressions: mask, fingerprint, search indexes and id, evaluated over its data. A failure
 * is a 400 that names the member; the message says what is wrong and never what was in the data.
 */
import type { KeyObject } from 'node:crypto';
import { fieldError } from '../errors.ts';
import { compileTemplate } from '../expressions/compile.ts';
import { ExpressionError } from '../expressions/expression-error.ts';
import { FINGERPRINT_OUTPUT_MAX } from '../expressions/limits.ts';
import { evaluateMask } from '../expressions/mask.ts';
import { Meter } from '../expressions/meter.ts';
import { isObject } from '../expressions/values.ts';
import { stringifyJson } from '../json-text.ts';
import { dataTerm } from './fingerprint.ts';
import type { TokenDraft } from './token-draft.ts';

/** Runs `work`; an expression's own error becomes a 400 at `path`. */
export function expressionErrorsAt<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ExpressionError) throw fieldError(error.path ?? path, error.message);
    throw error;
  }
}

/** The evaluated mask; `undefined` when nothing is left of it. */
export function evaluateTokenMask({
  type,
  mask,
  data,
}: Pick<TokenDraft, 'type' | 'mask' | 'data'>): unknown {
  const masked = evaluateMask(mask, { data });
  return type === 'card' && isObject(masked) ? withoutMissingExpiry(masked) : masked;
}

/** A card may have no expiry: its mask shows that as its data do, not as null (facts 5.7). */
function withoutMissingExpiry(members: Record<string, unknown>): Record<string, unknown> {
  const { expiration_month, expiration_year } = members;
  if (expiration_month !== null && expiration_year !== null) return members;
  const isThere = ([name, value]: [string, unknown]): boolean =>
    value !== null || (name !== 'expiration_month' && name !== 'expiration_year');
  return Object.fromEntries(Object.entries(members).filter(isThere));
}

/** The text that the fingerprint is made of: it may be as large as the data. */
export function evaluateFingerprint(
  { data, metadata }: Pick<TokenDraft, 'data' | 'metadata'>,
  expression: string,
): string {
  return expressionErrorsAt('fingerprint_expression', () => {
    const meter = new Meter(FINGERPRINT_OUTPUT_MAX);
    return textOf(compileTemplate(expression).evaluate({ data, metadata }, meter));
  });
}

/** The blind index terms of the search indexes; each must give one scalar that is not empty. */
export function evaluateSearchTerms(
  { search_indexes, data }: Pick<TokenDraft, 'search_indexes' | 'data'>,
  searchKey: KeyObject,
): Buffer[] {
  return search_indexes.map((expression, index) => {
    const path = `search_indexes.${index}`;
    const value = expressionErrorsAt(path, () => compileTemplate(expression).evaluate({ data }));
    if (value === null || value === undefined || value === '') {
      throw fieldError(path, 'The expression yields nothing');
    }
    if (typeof value === 'object') {
      throw fieldError(path, 'The expression must yield a single value');
    }
    return dataTerm(searchKey, String(value));
  });
}

/** The id an expression yields. Aliases are random: each call may give another. */
export function evaluateTokenId(expression: string, data: unknown): string {
  const value = expressionErrorsAt('id', () => compileTemplate(expression).evaluate({ data }));
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw fieldError('id', 'The expression must yield a text');
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : stringifyJson(value ?? null);
