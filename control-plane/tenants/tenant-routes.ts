/** `/tenants/self`: the tenant of the presented key (facts 4.1). */
import { randomUUID } from 'node:crypto';
import type Router from '@koa/router';
import * as api from '../../shared/api/tenants.ts';
import type { ChangedEntity } from '../../shared/config-entries/config-change.ts';
import { newWebhookSecret, webhookSecretText } from '../../shared/webhooks/sign-webhook.ts';
import { replaceWebhookSecret } from '../../shared/webhooks/webhook-secrets.ts';
import { applyChange } from '../apply-change.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { RequestState } from '../request-state.ts';
import { addOperation, type Carry, notFound } from '../serve-operation.ts';
import * as store from './tenant-store.ts';

export function addTenantRoutes(router: Router<RequestState>, plane: ControlPlane): void {
  addOperation(router, plane, api.getTenant, get(plane));
  addOperation(router, plane, api.updateTenant, update(plane));
  addOperation(router, plane, api.deleteTenant, remove(plane));
  addOperation(router, plane, api.createWebhookSecret, createWebhookSecret(plane));
}

const changed = (id: string): ChangedEntity => ({ kind: 'tenant', id });

function get({ pool }: ControlPlane): Carry<typeof api.getTenant> {
  return async ({ caller }) => (await store.findTenant(pool, caller.tenant_id)) ?? notFound();
}

/** Absent `settings` are kept, lest a rename switched fingerprints back on; null removes them all. */
function update(plane: ControlPlane): Carry<typeof api.updateTenant> {
  return ({ caller, body }) =>
    applyChange(plane, caller, changed(caller.tenant_id), async (client) => {
      const { tenant_id, application_id } = caller;
      const settings = body.settings === null ? {} : body.settings;
      const values = { name: body.name, settings };
      return (await store.updateTenant(client, tenant_id, values, application_id)) ?? notFound();
    });
}

function remove(plane: ControlPlane): Carry<typeof api.deleteTenant> {
  return ({ caller }) =>
    applyChange(plane, caller, changed(caller.tenant_id), async (client) => {
      await store.deleteTenant(client, caller.tenant_id);
      return undefined;
    });
}

/** No configuration that a data plane caches; recorded all the same, so that replacements queue up. */
function createWebhookSecret(plane: ControlPlane): Carry<typeof api.createWebhookSecret> {
  return ({ caller }) =>
    applyChange(plane, caller, changed(caller.tenant_id), async (client) => {
      const secret = newWebhookSecret();
      const made = { id: randomUUID(), secret };
      await replaceWebhookSecret(client, plane.dataKeys, caller.tenant_id, made);
      return { secret: webhookSecretText(secret) };
    });
}
