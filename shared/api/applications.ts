/** Applications: the holders of API keys, with their permissions and access rules (facts 3). */
import { type Static, Type } from 'typebox';
import { TRANSFORMS } from '../access/access-rules.ts';
import { CONTAINER_LENGTH_MAX } from '../access/containers.ts';
import { APPLICATION_TYPES, type Permission } from '../access/permissions.ts';
import {
  ACCESS_RULES_MAX,
  PERMISSIONS_MAX,
  RULE_DESCRIPTION_LENGTH_MAX,
  RULE_PRIORITY_MAX,
} from '../access/validate-access.ts';
import { audit, ExpiresAt, Name, nullable, oneOf, Timestamp, Uuid } from './fields.ts';
import { defineOperation } from './operation.ts';
import { pageOf, pageQuery } from './pagination.ts';
import { Problem } from './problem.ts';

/** Which names exist and who may hold them is judged by shared/access/validate-access.ts. */
const PermissionName = Type.Unsafe<Permission>({ type: 'string' });

const AccessRule = Type.Object(
  {
    description: Type.Optional(nullable(Type.String({ maxLength: RULE_DESCRIPTION_LENGTH_MAX }))),
    priority: Type.Integer({ minimum: 1, maximum: RULE_PRIORITY_MAX }),
    container: Type.String({ maxLength: CONTAINER_LENGTH_MAX }),
    transform: oneOf(TRANSFORMS),
    permissions: Type.Array(PermissionName, { minItems: 1, maxItems: PERMISSIONS_MAX }),
  },
  { title: 'AccessRule' },
);

const Permissions = Type.Array(PermissionName, { maxItems: PERMISSIONS_MAX });
const AccessRules = Type.Array(AccessRule, { maxItems: ACCESS_RULES_MAX });

export const Application = Type.Object(
  {
    id: Uuid,
    tenant_id: Uuid,
    name: Name,
    key: Type.Optional(Type.String({ description: 'Shown once, when it is made' })),
    type: oneOf(APPLICATION_TYPES),
    permissions: Permissions,
    rules: AccessRules,
    expires_at: Type.Optional(Timestamp),
    ...audit,
  },
  { title: 'Application' },
);
export type Application = Static<typeof Application>;

const CreateApplicationRequest = Type.Object(
  {
    name: Name,
    type: oneOf(APPLICATION_TYPES),
    permissions: Type.Optional(nullable(Permissions)),
    rules: Type.Optional(nullable(AccessRules)),
    expires_at: Type.Optional(nullable(ExpiresAt)),
  },
  { title: 'CreateApplicationRequest' },
);
export type CreateApplicationRequest = Static<typeof CreateApplicationRequest>;

const UpdateApplicationRequest = Type.Object(
  {
    name: Name,
    permissions: Type.Optional(nullable(Permissions)),
    rules: Type.Optional(nullable(AccessRules)),
    expires_at: Type.Optional(
      nullable({ ...ExpiresAt, description: 'Absent: kept. Null: never expires' }),
    ),
  },
  { title: 'UpdateApplicationRequest' },
);
export type UpdateApplicationRequest = Static<typeof UpdateApplicationRequest>;

const params = Type.Object({ id: Uuid });
const base = { plane: 'control', tag: 'Applications' } as const;

export const createApplication = defineOperation({
  ...base,
  operationId: 'createApplication',
  method: 'POST',
  path: '/applications',
  permission: 'application:create',
  summary: 'Create an application; the answer is the only one that shows its key',
  body: CreateApplicationRequest,
  responses: { 201: Application, 400: Problem, 401: Problem, 403: Problem },
});

export const listApplications = defineOperation({
  ...base,
  operationId: 'listApplications',
  method: 'GET',
  path: '/applications',
  permission: 'application:read',
  summary: 'List applications, newest first, or those with the given ids in that order',
  query: Type.Object({
    id: Type.Optional(Type.Array(Uuid)),
    type: Type.Optional(Type.Array(oneOf(APPLICATION_TYPES))),
    ...pageQuery,
  }),
  responses: { 200: pageOf(Application), 400: Problem, 401: Problem, 403: Problem },
});

export const getApplicationByKey = defineOperation({
  ...base,
  operationId: 'getApplicationByKey',
  method: 'GET',
  path: '/applications/key',
  permission: 'any_key',
  summary: 'Get the application that the presented key belongs to',
  responses: { 200: Application, 401: Problem },
});

export const getApplication = defineOperation({
  ...base,
  operationId: 'getApplication',
  method: 'GET',
  path: '/applications/{id}',
  permission: 'application:read',
  summary: 'Get an application',
  params,
  responses: { 200: Application, 401: Problem, 403: Problem, 404: Problem },
});

export const updateApplication = defineOperation({
  ...base,
  operationId: 'updateApplication',
  method: 'PUT',
  path: '/applications/{id}',
  permission: 'application:update',
  summary: 'Replace name, permissions and access rules of an application',
  params,
  body: UpdateApplicationRequest,
  responses: { 200: Application, 400: Problem, 401: Problem, 403: Problem, 404: Problem },
});

export const deleteApplication = defineOperation({
  ...base,
  operationId: 'deleteApplication',
  method: 'DELETE',
  path: '/applications/{id}',
  permission: 'application:delete',
  summary: 'Delete an application; its keys stop working at once',
  params,
  responses: { 204: null, 401: Problem, 403: Problem, 404: Problem },
});

export const regenerateKey = defineOperation({
  ...base,
  operationId: 'regenerateKey',
  method: 'POST',
  path: '/applications/{id}/regenerate',
  permission: 'application:update',
  summary: 'Replace all keys of an application by a new one; the old ones stop working at once',
  params,
  responses: { 200: Application, 401: Problem, 403: Problem, 404: Problem },
});
