/** The operation that answers the OpenAPI document itself. */
import { Type } from 'typebox';
import { defineOperation } from './operation.ts';

export const getOpenApi = defineOperation({
  operationId: 'getOpenApi',
  method: 'GET',
  path: '/openapi.json',
  plane: 'control',
  permission: 'no_key',
  summary: 'Get this document',
  tag: 'Documentation',
  responses: { 200: Type.Unsafe<object>({ type: 'object' }) },
});
