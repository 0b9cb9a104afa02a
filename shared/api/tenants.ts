/** The tenant that the presented key belongs to (facts 4.1). */
import { type Static, Type } from 'typebox';
import { audit, Name, nullable, oneOf, Uuid } from './fields.ts';
import { defineOperation } from './operation.ts';
import { Problem } from './problem.ts';

/** Guards against abuse: there are two settings that mean something today. */
const SETTINGS_MAX = 50;
const SETTING_NAME = '^[A-Za-z0-9_-]{1,100}$';
const SETTING_LENGTH_MAX = 500;

const flag = oneOf(['true', 'false']);

/** Settings that mean nothing to this version are kept, so that clients may know more than it. */
const Settings = Type.Unsafe<Record<string, string>>({
  type: 'object',
  properties: { fingerprint_tokens: flag, deduplicate_tokens: flag },
  propertyNames: { pattern: SETTING_NAME },
  additionalProperties: {
    type: 'string',
    maxLength: SETTING_LENGTH_MAX,
    pattern: '^[^\\u0000]*$',
  },
  maxProperties: SETTINGS_MAX,
});

const Tenant = Type.Object(
  {
    id: Uuid,
    owner_id: Type.Optional(Uuid),
    name: Name,
    settings: Settings,
    ...audit,
  },
  { title: 'Tenant' },
);
export type Tenant = Static<typeof Tenant>;

const UpdateTenantRequest = Type.Object(
  {
    name: Name,
    settings: Type.Optional(
      nullable({ ...Settings, type: 'object', description: 'Absent: kept. Null: none' }),
    ),
  },
  { title: 'UpdateTenantRequest' },
);
export type UpdateTenantRequest = Static<typeof UpdateTenantRequest>;

const WebhookSecret = Type.Object(
  {
    secret: Type.String({
      pattern: '^whsec_[A-Za-z0-9+/]+={0,2}$',
      description: 'Shown once. Signs callbacks from now on (Standard Webhooks)',
    }),
  },
  { title: 'WebhookSecret' },
);

const base = { plane: 'control', tag: 'Tenants', path: '/tenants/self' } as const;

export const getTenant = defineOperation({
  ...base,
  operationId: 'getTenant',
  method: 'GET',
  permission: 'tenant:read',
  summary: 'Get the tenant',
  responses: { 200: Tenant, 401: Problem, 403: Problem },
});

export const updateTenant = defineOperation({
  ...base,
  operationId: 'updateTenant',
  method: 'PUT',
  permission: 'tenant:update',
  summary: 'Rename the tenant and replace its settings',
  body: UpdateTenantRequest,
  responses: { 200: Tenant, 400: Problem, 401: Problem, 403: Problem },
});

export const deleteTenant = defineOperation({
  ...base,
  operationId: 'deleteTenant',
  method: 'DELETE',
  permission: 'tenant:delete',
  summary: 'Delete the tenant with everything in it; its keys are destroyed at once',
  responses: { 204: null, 401: Problem, 403: Problem },
});

export const createWebhookSecret = defineOperation({
  ...base,
  operationId: 'createWebhookSecret',
  method: 'POST',
  path: '/tenants/self/webhook-secret',
  permission: 'tenant:update',
  summary:
    'Make or replace the secret that signs callbacks; a replaced one signs along for 24 hours',
  responses: { 201: WebhookSecret, 401: Problem, 403: Problem },
});
