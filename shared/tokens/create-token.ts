/**
 * Reads a request to create a token into a draft: type rules, defaults and coercions (facts 5). Takes
 * `cvc` out of the data before anything is evaluated over it.
 */
import { CONTAINER_PROBLEM, normaliseContainer } from '../access/containers.ts';
import type { CreateTokenRequest } from '../api/tokens.ts';
import { fieldError } from '../errors.ts';
import { compileTemplate, hasExpression } from '../expressions/compile.ts';
import { validateMask } from '../expressions/mask.ts';
import { expressionErrorsAt } from './evaluate.ts';
import { parseExpiresAt } from './expires-at.ts';
import { validateMetadata } from './metadata.ts';
import { readTokenData } from './token-data.ts';
import type { TokenDraft } from './token-draft.ts';
import { tokenIdProblem } from './token-id.ts';
import { isTokenType, TOKEN_TYPES, type TokenType } from './token-types.ts';

/** Tenant settings that tokens obey (facts 4.1); values are the texts "true" and "false". */
export type TokenSettings = Readonly<Record<string, string>>;

export interface TokenCreation {
  draft: TokenDraft;
  cvc: string | undefined;
  deduplicate: boolean;
  /** The id asked for; `undefined` assigns a UUID. An expression is evaluated once per attempt. */
  id: { literal: string } | { expression: string } | undefined;
}

/** Throws a validation error naming every member that is not as documented. */
export function readCreation(body: CreateTokenRequest, settings: TokenSettings): TokenCreation {
  const type = readType(body.type);
  const { data, cvc } = readTokenData(type, body.data);
  const deduplicate = readDeduplicate(body.deduplicate_token, settings);
  return {
    draft: {
      type,
      data,
      mask: body.mask === undefined || body.mask === null ? defaultMask(type) : readMask(body.mask),
      container: readContainer(body.containers, type),
      metadata: body.metadata == null ? undefined : validateMetadata(body.metadata),
      search_indexes:
        body.search_indexes == null
          ? [...TOKEN_TYPES[type].search_indexes]
          : readSearchIndexes(body.search_indexes),
      fingerprint_expression: readFingerprintExpression(
        body.fingerprint_expression,
        type,
        settings,
        deduplicate,
      ),
      expires_at_ms: readExpiresAt(body.expires_at),
    },
    cvc,
    deduplicate,
    id: readId(body.id),
  };
}

function readType(type: string): TokenType {
  if (!isTokenType(type)) throw fieldError('type', 'It is not a token type');
  return type;
}

/** A text of the id: an expression when it holds braces, else it must be an id as it is. */
function readId(id: string | null | undefined): TokenCreation['id'] {
  if (id === undefined || id === null) return undefined;
  if (hasExpression(id)) {
    expressionErrorsAt('id', () => compileTemplate(id));
    return { expression: id };
  }
  checkTokenId(id);
  return { literal: id };
}

/** Throws a validation error unless `id` may be a token's id. */
export function checkTokenId(id: string): void {
  const problem = tokenIdProblem(id);
  if (problem !== undefined) throw fieldError('id', problem);
}

const defaultMask = (type: TokenType): unknown => TOKEN_TYPES[type].mask ?? undefined;

export function readMask(mask: unknown): unknown {
  expressionErrorsAt('mask', () => validateMask(mask));
  return mask;
}

export function readContainer(containers: string[] | null | undefined, type: TokenType): string {
  const paths = new Set((containers ?? []).map(normaliseContainer));
  if (paths.has(undefined)) throw fieldError('containers', CONTAINER_PROBLEM);
  if (paths.size > 1) throw fieldError('containers', 'At most one container is allowed');
  const [container] = paths;
  return container ?? TOKEN_TYPES[type].container;
}

/** Compiled here so that a malformed one is a 400; an index given twice is stored once. */
export function readSearchIndexes(expressions: string[]): string[] {
  const distinct = [...new Set(expressions)];
  distinct.forEach((expression, index) => {
    checkExpression(`search_indexes.${index}`, expression);
  });
  return distinct;
}

/** Throws a 400 at `path` for a malformed expression, or one that no text column can hold. */
function checkExpression(path: string, expression: string): void {
  if (expression.includes('\0')) throw fieldError(path, 'NUL characters are not allowed');
  expressionErrorsAt(path, () => compileTemplate(expression));
}

export function readDeduplicate(
  requested: boolean | null | undefined,
  settings: TokenSettings,
): boolean {
  return requested ?? settings.deduplicate_tokens === 'true';
}

/**
 * The expression given, else the type's default; none when the tenant switched fingerprints off and
 * nothing else needs one (design section 12).
 */
export function readFingerprintExpression(
  given: string | null | undefined,
  type: TokenType,
  settings: TokenSettings,
  deduplicate: boolean,
): string | undefined {
  if (given !== undefined && given !== null) {
    checkExpression('fingerprint_expression', given);
    return given;
  }
  const wanted = deduplicate || settings.fingerprint_tokens !== 'false';
  return wanted ? TOKEN_TYPES[type].fingerprint_expression : undefined;
}

/** Milliseconds since the epoch, or `null` for never. Whether it is past, the database decides. */
export function readExpiresAt(text: string | null | undefined): number | null {
  if (text === undefined || text === null) return null;
  const date = parseExpiresAt(text);
  if (date === undefined) throw fieldError('expires_at', 'It is not a date of a documented form');
  return date.getTime();
}
