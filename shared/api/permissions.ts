/** The catalogue of permissions, for whoever builds an application (facts 3.2). */
import { Type } from 'typebox';
import { APPLICATION_TYPES, type ApplicationType, type Permission } from '../access/permissions.ts';
import { oneOf } from './fields.ts';
import { defineOperation } from './operation.ts';
import { Problem } from './problem.ts';

const PermissionDescription = Type.Object(
  {
    type: Type.Unsafe<Permission>({ type: 'string' }),
    description: Type.String(),
    application_types: Type.Unsafe<readonly ApplicationType[]>({
      type: 'array',
      items: oneOf(APPLICATION_TYPES),
    }),
  },
  { title: 'Permission' },
);

export const listPermissions = defineOperation({
  operationId: 'listPermissions',
  method: 'GET',
  path: '/permissions',
  plane: 'control',
  permission: 'any_key',
  summary: 'List the permissions and the application types that may hold each',
  tag: 'Permissions',
  query: Type.Object({ application_type: Type.Optional(oneOf(APPLICATION_TYPES)) }),
  responses: { 200: Type.Array(PermissionDescription), 400: Problem, 401: Problem },
});
