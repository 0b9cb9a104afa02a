/** Reactors: customers' code with its configuration, run on detokenised arguments (spec: Reactors). */
import { type Static, Type } from 'typebox';
import { Application } from './applications.ts';
import { audit, Name, nullable, Timestamp, Uuid, UuidInBody } from './fields.ts';
import { defineOperation } from './operation.ts';
import { pageOf, pageQuery } from './pagination.ts';
import { Problem } from './problem.ts';
import { ReactorFormula } from './reactor-formulas.ts';
import { ApplicationPatch, ApplicationReference, Code, Configuration } from './scripts.ts';

const Reactor = Type.Object(
  {
    id: Uuid,
    tenant_id: Uuid,
    name: Name,
    formula: Type.Optional(ReactorFormula),
    code: Type.Optional(Type.String()),
    application: Type.Optional(Application),
    configuration: Configuration,
    debug_until: Type.Optional(Timestamp),
    ...audit,
  },
  { title: 'Reactor' },
);
export type Reactor = Static<typeof Reactor>;

const DebugUntil = Type.String({
  format: 'date-time',
  maxLength: 100,
  description: 'Until then, at most an hour ahead, answers carry the console lines of the run',
});

const application = Type.Optional(nullable(ApplicationReference));
const debug_until = Type.Optional(nullable(DebugUntil));

const CreateReactorRequest = Type.Object(
  {
    name: Name,
    formula: Type.Optional(nullable(Type.Object({ id: UuidInBody }))),
    code: Type.Optional(nullable(Code)),
    configuration: Type.Optional(
      nullable({
        ...Configuration,
        type: 'object',
        description: 'Required with `formula.id`, whose declarations it must satisfy',
      }),
    ),
    application,
  },
  { title: 'CreateReactorRequest' },
);
export type CreateReactorRequest = Static<typeof CreateReactorRequest>;

const UpdateReactorRequest = Type.Object(
  {
    name: Name,
    code: Type.Optional(nullable(Code)),
    configuration: Type.Optional(nullable({ ...Configuration, type: 'object' })),
    application,
    debug_until,
  },
  { title: 'UpdateReactorRequest' },
);
export type UpdateReactorRequest = Static<typeof UpdateReactorRequest>;

/** A merge patch: null removes. */
const PatchReactorRequest = Type.Object(
  {
    name: Type.Optional(Name),
    code: Type.Optional(Code),
    configuration: Type.Optional(nullable({ ...Configuration, type: 'object' })),
    application: Type.Optional(nullable(ApplicationPatch)),
    debug_until,
  },
  { title: 'PatchReactorRequest' },
);
export type PatchReactorRequest = Static<typeof PatchReactorRequest>;

const args = Type.Optional(
  Type.Unknown({
    description: 'Arguments; texts may be detokenization expressions, `{{<token id>}}`',
  }),
);
/** Unknown: any value is ignored in a call that is not asynchronous. */
const timeout_ms = Type.Optional(
  Type.Unknown({
    description:
      'Time of an asynchronous run in milliseconds, an integer from 10000 to 210000; ' +
      '`timeoutMs` is the same',
  }),
);

const ReactRequest = Type.Object(
  {
    args,
    callback_url: Type.Optional(
      Type.Unknown({
        description:
          'https address. When given, the answer is 202 and what the run answers is POSTed there; ' +
          '`callbackUrl` is the same',
      }),
    ),
    timeout_ms,
  },
  { title: 'ReactRequest' },
);

const ReactAsyncRequest = Type.Object({ args, timeout_ms }, { title: 'ReactAsyncRequest' });

const ReactAsyncResponse = Type.Object(
  { asyncReactorRequestId: Uuid },
  { title: 'ReactAsyncResponse' },
);

const ReactResponse = Type.Object(
  {
    tokens: Type.Optional(
      Type.Unknown({ description: 'Made from what the code told to tokenize' }),
    ),
    raw: Type.Optional(Type.Unknown({ description: 'Whatever else the code returned' })),
    _debug: Type.Optional(
      Type.Object(
        {
          console: Type.Array(Type.Object({ level: Type.String(), text: Type.String() })),
          duration_ms: Type.Number(),
        },
        { description: 'Until `debug_until` of the reactor' },
      ),
    ),
  },
  { title: 'ReactResponse' },
);

const params = Type.Object({ id: Uuid });
const base = { plane: 'control', tag: 'Reactors' } as const;
const refusals = { 400: Problem, 401: Problem, 403: Problem } as const;
/** Code could not be checked now. */
const unchecked = { 429: Problem, 503: Problem } as const;

export const createReactor = defineOperation({
  ...base,
  operationId: 'createReactor',
  method: 'POST',
  path: '/reactors',
  permission: 'reactor:create',
  summary: 'Create a reactor from a formula or from code of its own',
  body: CreateReactorRequest,
  responses: { 201: Reactor, ...refusals, ...unchecked },
});

export const listReactors = defineOperation({
  ...base,
  operationId: 'listReactors',
  method: 'GET',
  path: '/reactors',
  permission: 'reactor:read',
  summary:
    'List reactors, newest first, or those with the given ids in that order; ' +
    '`name` matches anywhere, `*` stands for any characters',
  query: Type.Object({
    id: Type.Optional(Type.Array(Uuid)),
    name: Type.Optional(Type.String()),
    ...pageQuery,
  }),
  responses: { 200: pageOf(Reactor), ...refusals },
});

export const getReactor = defineOperation({
  ...base,
  operationId: 'getReactor',
  method: 'GET',
  path: '/reactors/{id}',
  permission: 'reactor:read',
  summary: 'Get a reactor',
  params,
  responses: { 200: Reactor, 401: Problem, 403: Problem, 404: Problem },
});

export const updateReactor = defineOperation({
  ...base,
  operationId: 'updateReactor',
  method: 'PUT',
  path: '/reactors/{id}',
  permission: 'reactor:update',
  summary: 'Replace name, configuration and application of a reactor; its formula stays',
  params,
  body: UpdateReactorRequest,
  responses: { 200: Reactor, ...refusals, 404: Problem, ...unchecked },
});

export const patchReactor = defineOperation({
  ...base,
  operationId: 'patchReactor',
  method: 'PATCH',
  path: '/reactors/{id}',
  permission: 'reactor:update',
  summary: 'Change parts of a reactor (RFC 7396); null removes',
  params,
  body: PatchReactorRequest,
  mediaType: 'application/merge-patch+json',
  responses: { 204: null, ...refusals, 404: Problem, 415: Problem, ...unchecked },
});

export const deleteReactor = defineOperation({
  ...base,
  operationId: 'deleteReactor',
  method: 'DELETE',
  path: '/reactors/{id}',
  permission: 'reactor:delete',
  summary: 'Delete a reactor',
  params,
  responses: { 204: null, 401: Problem, 403: Problem, 404: Problem },
});

/** Carried out by the data plane. */
export const react = defineOperation({
  operationId: 'react',
  method: 'POST',
  path: '/reactors/{id}/react',
  plane: 'data',
  tag: 'Reactors',
  permission: 'token:use',
  summary: 'Run a reactor on arguments whose token ids have been replaced by their values',
  params,
  body: ReactRequest,
  bodyOptional: true,
  responses: {
    200: ReactResponse,
    202: Type.Object({}, { description: 'With `callback_url`' }),
    ...refusals,
    ...{ 404: Problem, 413: Problem, 415: Problem, 422: Problem, 429: Problem },
    ...{ 500: Problem, 503: Problem },
  },
});

/** Carried out by the data plane. */
export const reactAsync = defineOperation({
  operationId: 'reactAsync',
  method: 'POST',
  path: '/reactors/{id}/react-async',
  plane: 'data',
  tag: 'Reactors',
  permission: 'token:use',
  summary: 'Run a reactor later; what it answers is kept for a day',
  params,
  body: ReactAsyncRequest,
  bodyOptional: true,
  responses: {
    202: ReactAsyncResponse,
    ...refusals,
    ...{ 404: Problem, 413: Problem, 415: Problem, 429: Problem, 503: Problem },
  },
});

/** Carried out by the data plane. */
export const getReactorResult = defineOperation({
  operationId: 'getReactorResult',
  method: 'GET',
  path: '/reactors/{id}/results/{requestId}',
  plane: 'data',
  tag: 'Reactors',
  permission: 'token:use',
  summary: 'Get what an asynchronous run answered, with its status; 404 until it has ended',
  params: Type.Object({ id: Uuid, requestId: Uuid }),
  responses: {
    200: ReactResponse,
    ...refusals,
    ...{ 404: Problem, 409: Problem, 422: Problem, 429: Problem, 500: Problem, 503: Problem },
  },
});
