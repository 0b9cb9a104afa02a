/**
 * Tokens (spec: Tokens; facts 5). `data` and `mask` are any JSON; ids, containers, expressions and
 * dates have rules of their own in shared/tokens and shared/expressions.
 */
import { type Static, Type } from 'typebox';
import { QUERY_LENGTH_MAX } from '../tokens/search-query.ts';
import { TOKEN_TYPES, type TokenType } from '../tokens/token-types.ts';
import { audit, ExpiresAt, nullable, oneOf, Timestamp, Uuid } from './fields.ts';
import { defineOperation } from './operation.ts';
import { pageOf, pageQuery } from './pagination.ts';
import { Problem } from './problem.ts';

const TOKEN_TYPE_NAMES = Object.keys(TOKEN_TYPES) as TokenType[];

/** The bound of an expression's source (design section 7): ids and indexes may be given as one. */
const EXPRESSION_LENGTH_MAX = 4096;
/** Facts 0.2. */
const FINGERPRINT_EXPRESSION_LENGTH_MAX = 400;
const SEARCH_INDEXES_MAX = 10;
/** A token lies in one container; a repeated path counts once, so a few are let through. */
const CONTAINERS_MAX = 10;

/** Null is no data: it is refused, as in a create and in a patch. */
const Data = Type.Unsafe<unknown>({
  type: ['object', 'array', 'string', 'number', 'boolean'],
  description: 'Any JSON but null',
});
const Mask = Type.Unsafe<unknown>({ description: 'Any JSON; texts may be expressions' });

/** Limits of keys and values are checked by shared/tokens/metadata.ts. */
const Metadata = Type.Unsafe<Record<string, string | null>>({
  type: 'object',
  additionalProperties: { type: ['string', 'null'] },
});

/** What can be written at creation and changed later. */
const writable = {
  mask: Type.Optional(Mask),
  containers: Type.Optional(nullable(Type.Array(Type.String(), { maxItems: CONTAINERS_MAX }))),
  metadata: Type.Optional(nullable({ ...Metadata, type: 'object' })),
  search_indexes: Type.Optional(
    nullable(
      Type.Array(Type.String({ maxLength: EXPRESSION_LENGTH_MAX }), {
        maxItems: SEARCH_INDEXES_MAX,
      }),
    ),
  ),
  fingerprint_expression: Type.Optional(
    nullable(Type.String({ maxLength: FINGERPRINT_EXPRESSION_LENGTH_MAX })),
  ),
  deduplicate_token: Type.Optional(nullable(Type.Boolean())),
  expires_at: Type.Optional(nullable(ExpiresAt)),
};

const CreateTokenRequest = Type.Object(
  {
    id: Type.Optional(nullable(Type.String({ maxLength: EXPRESSION_LENGTH_MAX }))),
    type: oneOf(TOKEN_TYPE_NAMES),
    data: Data,
    ...writable,
  },
  { title: 'CreateTokenRequest' },
);
export type CreateTokenRequest = Static<typeof CreateTokenRequest>;

/** A merge patch (RFC 7396): null removes what it names, or brings the default back. */
const UpdateTokenRequest = Type.Object(
  { data: Type.Optional(Data), ...writable },
  { title: 'UpdateTokenRequest' },
);
export type UpdateTokenRequest = Static<typeof UpdateTokenRequest>;

const Token = Type.Object(
  {
    id: Type.String(),
    tenant_id: Uuid,
    type: oneOf(TOKEN_TYPE_NAMES),
    data: Type.Optional(
      Type.Unsafe<unknown>({ description: 'As the access rules let it be seen' }),
    ),
    mask: Type.Optional(Mask),
    containers: Type.Array(Type.String()),
    metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
    search_indexes: Type.Optional(Type.Array(Type.String())),
    fingerprint: Type.Optional(Type.String()),
    fingerprint_expression: Type.Optional(Type.String()),
    expires_at: Type.Optional(Timestamp),
    ...audit,
    created_at: Type.Optional(Timestamp),
    _extras: Type.Optional(Type.Object({ deduplicated: Type.Boolean() })),
  },
  { title: 'Token' },
);
export type Token = Static<typeof Token>;

/** Null is left out, as clients send it. Page and size as in lists. */
const SearchTokensRequest = Type.Object(
  {
    query: Type.Optional(nullable(Type.String({ maxLength: QUERY_LENGTH_MAX }))),
    page: Type.Optional(nullable(pageQuery.page)),
    size: Type.Optional(nullable(pageQuery.size)),
  },
  { title: 'SearchTokensRequest' },
);
export type SearchTokensRequest = Static<typeof SearchTokensRequest>;

const AnyJson = (description: string) => Type.Unsafe<unknown>({ description });

const params = Type.Object({ id: Type.String({ minLength: 1 }) });
const base = { plane: 'data', tag: 'Tokens' } as const;

export const createToken = defineOperation({
  ...base,
  operationId: 'createToken',
  transactional: true,
  method: 'POST',
  path: '/tokens',
  permission: 'token:create',
  summary: 'Create a token',
  body: CreateTokenRequest,
  responses: { 201: Token, 400: Problem, 401: Problem, 403: Problem, 409: Problem },
});

export const listTokens = defineOperation({
  ...base,
  operationId: 'listTokens',
  method: 'GET',
  path: '/tokens',
  permission: 'token:read',
  summary: 'List tokens, newest first, or those with the given ids in that order',
  query: Type.Object({
    id: Type.Optional(Type.Array(Type.String())),
    type: Type.Optional(Type.Array(oneOf(TOKEN_TYPE_NAMES))),
    metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
    ...pageQuery,
  }),
  responses: { 200: pageOf(Token), 400: Problem, 401: Problem, 403: Problem },
});

export const getToken = defineOperation({
  ...base,
  operationId: 'getToken',
  method: 'GET',
  path: '/tokens/{id}',
  permission: 'token:read',
  summary: 'Get a token',
  params,
  responses: { 200: Token, 401: Problem, 403: Problem, 404: Problem },
});

export const updateToken = defineOperation({
  ...base,
  operationId: 'updateToken',
  transactional: true,
  method: 'PATCH',
  path: '/tokens/{id}',
  permission: 'token:update',
  summary: 'Change a token by a merge patch',
  params,
  body: UpdateTokenRequest,
  mediaType: 'application/merge-patch+json',
  responses: {
    200: Token,
    400: Problem,
    401: Problem,
    403: Problem,
    404: Problem,
    409: Problem,
    415: Problem,
  },
});

export const deleteToken = defineOperation({
  ...base,
  operationId: 'deleteToken',
  transactional: true,
  method: 'DELETE',
  path: '/tokens/{id}',
  permission: 'token:delete',
  summary: 'Delete a token',
  params,
  responses: { 204: null, 401: Problem, 403: Problem, 404: Problem },
});

export const searchTokens = defineOperation({
  ...base,
  operationId: 'searchTokens',
  safe: true,
  method: 'POST',
  path: '/tokens/search',
  permission: 'token:search',
  summary: 'Search tokens by a query such as `type:card AND metadata.order:7`, newest first',
  body: SearchTokensRequest,
  responses: { 200: pageOf(Token), 400: Problem, 401: Problem, 403: Problem },
});

export const tokenize = defineOperation({
  ...base,
  operationId: 'tokenize',
  transactional: true,
  method: 'POST',
  path: '/tokenize',
  permission: 'token:create',
  summary: 'Create a token for each value and token request in any JSON: all, or none',
  body: AnyJson(
    'Objects with `data` and a token `type` are token requests as of `POST /tokens`, and so are ' +
      'objects with `data` and nothing but members of such requests; every other text, number ' +
      'and boolean becomes a token of type `token`. At most 100',
  ),
  responses: {
    200: AnyJson('The same JSON: token requests replaced by their tokens, values by token ids'),
    400: Problem,
    401: Problem,
    403: Problem,
    409: Problem,
  },
});

export const detokenize = defineOperation({
  ...base,
  operationId: 'detokenize',
  safe: true,
  method: 'POST',
  path: '/detokenize',
  permission: 'token:read',
  summary: 'Replace the expressions in any JSON by the data of tokens',
  body: AnyJson('Texts may hold `{{ <token id> | filters }}`; at most 100 different tokens'),
  responses: {
    200: AnyJson('The same JSON with the data as the access rules let it be read'),
    400: Problem,
    401: Problem,
    403: Problem,
  },
});
