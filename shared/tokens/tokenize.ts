/**
 * Finds what a tokenize request asks for in any JSON (facts 7.2): objects that are token requests,
 * and every other text, number and boolean, which becomes a generic token. Stores nothing itself.
 */
import { fieldError } from '../errors.ts';
import { itemPath, memberPath } from '../json-member-path.ts';
import { isTokenType } from './token-types.ts';

/**
 * Tokens of one request: as many as one detokenizes, and they fit one statement. The original
 * service had no limit, later one of 5.
 */
export const TOKENIZED_TOKENS_MAX = 100;

/** Members that a token request may have; an object without a type and with others is none. */
const REQUEST_MEMBERS = new Set([
  ...['id', 'type', 'data', 'mask', 'containers', 'metadata', 'search_indexes'],
  ...['fingerprint_expression', 'deduplicate_token', 'expires_at'],
]);

export interface TokenRequest {
  /** Like the body of POST /tokens; not validated yet. */
  readonly body: unknown;
  /** Where it stands in the request, for errors; empty at the root. */
  readonly path: string;
  /** A value by itself is answered by its token's id, a token request by the whole token. */
  readonly kind: 'value' | 'token';
}

export interface TokenizePlan {
  /** In the order of the request. */
  readonly requests: readonly TokenRequest[];
  /** The answer's JSON: `answers` has the JSON text in place of each request, in their order. */
  render(answers: readonly string[]): string;
}

type Render = (answers: readonly string[]) => string;

/** Throws 400 at `body` above 100 tokens. The body must not be deeper than `parseJson` lets it be. */
export function planTokenize(body: unknown): TokenizePlan {
  const requests: TokenRequest[] = [];
  const render = planNode(body, '', requests);
  return { requests, render };
}

function planNode(node: unknown, path: string, requests: TokenRequest[]): Render {
  if (node === null) return () => 'null';
  if (typeof node !== 'object') {
    return planRequest({ body: { type: 'token', data: node }, path, kind: 'value' }, requests);
  }
  if (Array.isArray(node)) return planList(node, path, requests);
  if (isTokenRequest(node)) {
    // Without a type it is a generic one.
    return planRequest({ body: withType(node), path, kind: 'token' }, requests);
  }
  return planObject(node, path, requests);
}

function planRequest(request: TokenRequest, requests: TokenRequest[]): Render {
  const index = requests.push(request) - 1;
  if (index >= TOKENIZED_TOKENS_MAX) {
    const limit = `At most ${TOKENIZED_TOKENS_MAX} tokens may be created in a single request`;
    throw fieldError('body', limit);
  }
  return (answers) => answers[index] ?? 'null';
}

function planList(list: readonly unknown[], path: string, requests: TokenRequest[]): Render {
  const items = list.map((item, index) => planNode(item, itemPath(path, index), requests));
  return (answers) => `[${items.map((render) => render(answers)).join(',')}]`;
}

function planObject(object: object, path: string, requests: TokenRequest[]): Render {
  const members = Object.entries(object).map(([name, item]): [string, Render] => [
    JSON.stringify(name),
    planNode(item, memberPath(path, name), requests),
  ]);
  return (answers) =>
    `{${members.map(([name, render]) => `${name}:${render(answers)}`).join(',')}}`;
}

/** `data` with a token type; or without a type, but with nothing that a token does not have. */
function isTokenRequest(object: object): boolean {
  if (!Object.hasOwn(object, 'data')) return false;
  const { type = null, data } = object as { type?: unknown; data: unknown };
  if (type !== null) return typeof type === 'string' && isTokenType(type);
  return data !== null && Object.keys(object).every((name) => REQUEST_MEMBERS.has(name));
}

function withType(object: object): object {
  const { type } = object as { type?: unknown };
  return type === undefined || type === null ? { ...object, type: 'token' } : object;
}
