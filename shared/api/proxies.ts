/** Proxies: where requests are forwarded to, and what is done with them on the way (spec: Proxies). */
import { type Static, Type } from 'typebox';
import { audit, Name, nullable, oneOf, Uuid, UuidInBody } from './fields.ts';
import { defineOperation } from './operation.ts';
import { pageOf, pageQuery } from './pagination.ts';
import { Problem } from './problem.ts';
import { ApplicationPatch, ApplicationReference, Code, Configuration } from './scripts.ts';

/** Facts 0.2: characters of a destination. */
export const DESTINATION_URL_LENGTH_MAX = 400;

/** What happens to an answer that shows a value which this very request was given. */
export const LEAK_TRIPWIRES = ['off', 'report', 'redact'] as const;
export type LeakTripwire = (typeof LEAK_TRIPWIRES)[number];

/** What can be told by a pattern; the rest is judged by shared/egress/destination-url.ts. */
const DestinationUrl = Type.String({
  minLength: 1,
  maxLength: DESTINATION_URL_LENGTH_MAX,
  description: 'An https URL without user name, password and fragment',
});

/** An enum has to list null itself. */
const LeakTripwireOrNull = Type.Unsafe<LeakTripwire | null>({
  type: ['string', 'null'],
  enum: [...LEAK_TRIPWIRES, null],
  description:
    'What to do when the destination answers a value that was detokenized for it: nothing, ' +
    'report it in metrics and logs (without it, by default), or mask it as well',
});

const RequireAuth = Type.Boolean({
  description:
    'Whether calls need, besides the key of the proxy, an API key with token:use; by default they do',
});

const ProxyTransform = Type.Object({ code: Code }, { title: 'ProxyTransform' });

const ProxyAnswer = Type.Object(
  {
    id: Uuid,
    key: Type.String({ description: 'By which the proxy is called' }),
    name: Name,
    destination_url: Type.String(),
    tenant_id: Uuid,
    require_auth: Type.Boolean(),
    request_transform: Type.Optional(ProxyTransform),
    response_transform: Type.Optional(ProxyTransform),
    application_id: Type.Optional(Uuid),
    configuration: Configuration,
    leak_tripwire: oneOf(LEAK_TRIPWIRES),
    ...audit,
  },
  { title: 'Proxy' },
);
export type ProxyAnswer = Static<typeof ProxyAnswer>;

const members = {
  request_transform: Type.Optional(nullable(ProxyTransform)),
  response_transform: Type.Optional(nullable(ProxyTransform)),
  application: Type.Optional(
    nullable({
      ...ApplicationReference,
      type: 'object',
      description: 'A public or private application that transforms act as',
    }),
  ),
  /** As answers have it. */
  application_id: Type.Optional(nullable(UuidInBody)),
  configuration: Type.Optional(nullable({ ...Configuration, type: 'object' })),
  require_auth: Type.Optional(nullable(RequireAuth)),
  leak_tripwire: Type.Optional(LeakTripwireOrNull),
};

const ProxyRequest = Type.Object(
  { name: Name, destination_url: DestinationUrl, ...members },
  { title: 'ProxyRequest' },
);
/** To create or to replace a proxy: what is absent or null has its default. */
export type ProxyRequest = Static<typeof ProxyRequest>;

const TransformPatch = nullable(Type.Object({ code: Type.Optional(nullable(Code)) }));

/** A merge patch: null removes, or brings the default back. */
const PatchProxyRequest = Type.Object(
  {
    ...members,
    name: Type.Optional(Name),
    destination_url: Type.Optional(DestinationUrl),
    request_transform: Type.Optional(TransformPatch),
    response_transform: Type.Optional(TransformPatch),
    application: Type.Optional(nullable(ApplicationPatch)),
  },
  { title: 'PatchProxyRequest' },
);
export type PatchProxyRequest = Static<typeof PatchProxyRequest>;

const params = Type.Object({ id: Uuid });
const base = { plane: 'control', tag: 'Proxies' } as const;
const refusals = { 400: Problem, 401: Problem, 403: Problem } as const;
/** Code could not be checked now. */
const unchecked = { 429: Problem, 503: Problem } as const;

export const createProxy = defineOperation({
  ...base,
  operationId: 'createProxy',
  method: 'POST',
  path: '/proxies',
  permission: 'proxy:create',
  summary: 'Create a proxy; its key is made with it',
  body: ProxyRequest,
  responses: { 201: ProxyAnswer, ...refusals, ...unchecked },
});

export const listProxies = defineOperation({
  ...base,
  operationId: 'listProxies',
  method: 'GET',
  path: '/proxies',
  permission: 'proxy:read',
  summary:
    'List proxies, newest first, or those with the given ids in that order; ' +
    '`name` matches anywhere, `*` stands for any characters',
  query: Type.Object({
    id: Type.Optional(Type.Array(Uuid)),
    name: Type.Optional(Type.String()),
    ...pageQuery,
  }),
  responses: { 200: pageOf(ProxyAnswer), ...refusals },
});

export const getProxy = defineOperation({
  ...base,
  operationId: 'getProxy',
  method: 'GET',
  path: '/proxies/{id}',
  permission: 'proxy:read',
  summary: 'Get a proxy',
  params,
  responses: { 200: ProxyAnswer, 401: Problem, 403: Problem, 404: Problem },
});

export const updateProxy = defineOperation({
  ...base,
  operationId: 'updateProxy',
  method: 'PUT',
  path: '/proxies/{id}',
  permission: 'proxy:update',
  summary: 'Replace everything of a proxy but its key',
  params,
  body: ProxyRequest,
  responses: { 200: ProxyAnswer, ...refusals, 404: Problem, ...unchecked },
});

export const patchProxy = defineOperation({
  ...base,
  operationId: 'patchProxy',
  method: 'PATCH',
  path: '/proxies/{id}',
  permission: 'proxy:update',
  summary: 'Change parts of a proxy (RFC 7396); null removes, or brings the default back',
  params,
  body: PatchProxyRequest,
  mediaType: 'application/merge-patch+json',
  responses: { 204: null, ...refusals, 404: Problem, 415: Problem, ...unchecked },
});

export const deleteProxy = defineOperation({
  ...base,
  operationId: 'deleteProxy',
  method: 'DELETE',
  path: '/proxies/{id}',
  permission: 'proxy:delete',
  summary: 'Delete a proxy; its key stops working',
  params,
  responses: { 204: null, 401: Problem, 403: Problem, 404: Problem },
});
