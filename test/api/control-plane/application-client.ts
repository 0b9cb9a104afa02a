/** Calls about applications with a management key, and with the keys that were made by them. */
import { expect } from 'chai';
import type { Application } from '../../../shared/api/applications.ts';
import type { TestControlPlane } from '../../support/control-plane.ts';
import { type Answer, type Call, call, type JsonObject } from '../../support/http-call.ts';

export const ISO_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
/** A body that is accepted. */
export const CHECKOUT = { name: 'Checkout', type: 'private', permissions: ['token:create'] };

export interface ApplicationClient {
  /** Any request with this key. */
  as<T = Application>(key: string, line: string, rest?: Call): Promise<Answer<T>>;
  /** Any request with the management key. */
  manage<T = Application>(line: string, json?: unknown): Promise<Answer<T>>;
  /** Makes `CHECKOUT`, but for what `over` says; fails unless it was made. */
  create(over?: JsonObject): Promise<Application & { key: string }>;
}

export function applicationClient({ baseUrl, tenant }: TestControlPlane): ApplicationClient {
  const as = <T>(key: string, line: string, rest: Call = {}) =>
    call<T>(baseUrl, line, { key, ...rest });
  const manage = <T>(line: string, json?: unknown) =>
    as<T>(tenant.managementKey, line, json === undefined ? {} : { json });
  return {
    as,
    manage,
    async create(over = {}) {
      const made = await manage<Application>('POST /applications', { ...CHECKOUT, ...over });
      const { status, body, headers } = made;
      expect([status, headers.get('location')]).to.deep.equal([201, `/applications/${body.id}`]);
      return { ...body, key: body.key ?? '' };
    },
  };
}

/** An access rule that is accepted, but for what `over` says. */
export function rule(over: JsonObject = {}): JsonObject {
  const whole = { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] };
  return { ...whole, ...over };
}
