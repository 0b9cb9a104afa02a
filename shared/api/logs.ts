/** The audit trail as administrators read it (facts 4.2). */
import { type Static, Type } from 'typebox';
import { Timestamp, Uuid } from './fields.ts';
import { defineOperation } from './operation.ts';
import { pageQuery } from './pagination.ts';
import { Problem } from './problem.ts';

/** How far pages and totals go: what lies behind is reached by `start`. */
export const LOG_TOTAL_MAX = 10_000;

const Log = Type.Object(
  {
    id: Uuid,
    tenant_id: Uuid,
    actor_id: Type.Optional(Uuid),
    actor_type: Type.String({ description: 'application, user or system' }),
    entity_type: Type.String(),
    entity_id: Type.Optional(Type.String()),
    operation: Type.String({ description: 'create, read, update, delete, use or regenerate' }),
    message: Type.String(),
    via_type: Type.Optional(
      Type.String({
        description:
          'reactor or proxy: through which a token was used, or whose code asked for it. An addition to the API',
      }),
    ),
    via_id: Type.Optional(Uuid),
    created_at: Timestamp,
  },
  { title: 'Log' },
);
export type Log = Static<typeof Log>;

/** Pages by number have all members, pages by `start` only the size and where to go on. */
const LogPagination = Type.Object(
  {
    page_size: Type.Integer({ minimum: 0 }),
    page_number: Type.Optional(Type.Integer({ minimum: 1 })),
    total_items: Type.Optional(Type.Integer({ minimum: 0, maximum: LOG_TOTAL_MAX })),
    total_pages: Type.Optional(Type.Integer({ minimum: 0 })),
    next: Type.Optional(Type.String({ description: 'The `start` of the next page' })),
  },
  { title: 'LogPagination' },
);

const EntityTypeName = Type.Object(
  { display_name: Type.String(), value: Type.String() },
  { title: 'LogEntityType' },
);

const base = { plane: 'control', tag: 'Logs', permission: 'log:read', method: 'GET' } as const;

export const listLogs = defineOperation({
  ...base,
  operationId: 'listLogs',
  path: '/logs',
  summary: 'List what was done in the tenant, the newest first',
  query: Type.Object({
    entity_type: Type.Optional(Type.String({ description: 'One of `GET /logs/entity-types`' })),
    entity_id: Type.Optional(Type.String()),
    start_date: Type.Optional(Type.String({ description: 'Not before this moment' })),
    end_date: Type.Optional(Type.String({ description: 'Before this moment' })),
    start: Type.Optional(Type.String({ maxLength: 500, description: '`next` of a page' })),
    ...pageQuery,
  }),
  responses: {
    200: Type.Object({ pagination: LogPagination, data: Type.Array(Log) }),
    400: Problem,
    401: Problem,
    403: Problem,
  },
});

export const listLogEntityTypes = defineOperation({
  ...base,
  operationId: 'listLogEntityTypes',
  path: '/logs/entity-types',
  summary: 'List the kinds of entities that logs are about',
  responses: { 200: Type.Array(EntityTypeName), 401: Problem, 403: Problem },
});
