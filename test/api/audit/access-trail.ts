/** Requests, each with the rows that it has left in the audit trail. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';
import { type Reactors, startReactors } from '../reactors/reactors.ts';
import { type TrailRow, trailOf } from './trail.ts';

type Sent = Answer<JsonObject> & { rows: TrailRow[] };

export interface AccessTrail {
  readonly planes: Reactors;
  readonly tenant_id: string;
  /** An application that may do everything with tokens, in clear. */
  readonly owner: { readonly id: string; readonly key: string };
  /** A request, the owner's unless said otherwise, and the rows of its trace when it was answered. */
  send(line: string, json?: unknown, key?: string, own?: Record<string, string>): Promise<Sent>;
  /** A new token's id. */
  token(json?: JsonObject): Promise<string>;
}

/** Both planes, with every access in the trail before it is answered. Stop `planes` in `after`. */
export async function startAccessTrail(): Promise<AccessTrail> {
  const planes = await startReactors({ SALLYPORT_AUDIT: 'strict' });
  const tenant_id = planes.control.tenant.id;
  const owner = await planes.application({
    rules: [
      {
        ...{ priority: 1, container: '/', transform: 'reveal' },
        permissions: [
          ...['token:create', 'token:read', 'token:update', 'token:delete'],
          ...['token:use', 'token:search'],
        ] as never[],
      },
    ],
  });
  const send = async (
    line: string,
    json?: unknown,
    key = owner.key,
    own: Record<string, string> = {},
  ): Promise<Sent> => {
    const trace = randomUUID();
    const headers = { 'bt-trace-id': trace, ...own };
    const answer = await call(planes.url, line, { key, headers, ...(json ? { json } : {}) });
    return { ...answer, rows: await trailOf(planes.control.pool, tenant_id, trace) };
  };
  const token = async (json: JsonObject = {}): Promise<string> => {
    const made = await send('POST /tokens', { type: 'token', data: randomUUID(), ...json });
    expect(made.status, made.text).to.equal(201);
    return String(made.body.id);
  };
  return { planes, tenant_id, owner, send, token };
}

/** Each row without the tenant and the trace, which `send` has asked for. */
export const told = (rows: readonly TrailRow[]): string[] =>
  rows.map((row) =>
    [
      ...(row.denied ? ['denied'] : []),
      `${row.operation} ${row.entity_type} ${row.entity_id} in ${row.container}`,
      ...(row.via_id === null ? [] : [`via ${row.via_type} ${row.via_id}`]),
      `by ${row.actor_type} ${row.actor_id}`,
    ].join(' '),
  );
