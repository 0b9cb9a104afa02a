/**
 * Carries out one operation of the contract: authenticate, permit, read path and query, validate the
 * body, handle, answer. What an operation requires is written in shared/api and nowhere else.
 */
import type { KeyObject } from 'node:crypto';
import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import {
  type AnswerOf,
  type BodyOf,
  type Operation,
  successStatus,
} from '../shared/api/operation.ts';
import { compileValidator } from '../shared/api/validate.ts';
import { ApiError } from '../shared/errors.ts';
import { parseQuery, type QueryParams } from '../shared/http/query.ts';
import type { Queryable } from '../shared/postgres/pool.ts';
import { type AuthenticatedKey, authenticate, type Caller } from './authenticate.ts';
import { readJsonBody } from './read-json-body.ts';
import type { RequestState } from './request-state.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** What a request has become when its operation is carried out. */
export interface OperationRequest<O extends Operation> {
  /** `undefined` for operations that need no key. */
  caller: O['permission'] extends 'no_key' ? undefined : Caller;
  /** Path parameters; ids in lower case. */
  params: { readonly id: string };
  query: QueryParams;
  body: BodyOf<O>;
}

/** Returns the body of the operation's success; throws `ApiError` for every other end. */
export type Carry<O extends Operation> = (request: OperationRequest<O>) => Promise<AnswerOf<O>>;

interface Authority {
  pool: Queryable;
  installation: { readonly pepper: KeyObject };
}

/** Serves `operation` by `carry` at its method and path. */
export function addOperation<O extends Operation>(
  router: Router<RequestState>,
  authority: Authority,
  operation: O,
  carry: Carry<O>,
): void {
  const validate = operation.body === undefined ? undefined : compileValidator(operation.body);
  const status = successStatus(operation);
  const path = operation.path.replaceAll(/\{(\w+)\}/g, ':$1');
  router.register(path, [operation.method], async (ctx: RouterContext<RequestState>) => {
    ctx.state.operation = operation;
    let caller: Caller | undefined;
    if (operation.permission !== 'no_key') {
      caller = await admit(authority, operation, ctx.get('bt-api-key'));
      ctx.state.caller = caller;
    }
    const request = {
      caller,
      params: { id: readId(operation, ctx.params) },
      query: parseQuery(ctx.querystring),
      body: validate?.(await readJsonBody(ctx, operation.mediaType)),
    };
    const answer = await carry(request as OperationRequest<O>);
    ctx.status = status;
    if (answer === undefined) return;
    const id = status === 201 ? createdId(answer) : undefined;
    if (id !== undefined) ctx.set('location', `${operation.path}/${id}`);
    ctx.type = 'application/json; charset=utf-8';
    ctx.body = JSON.stringify(answer);
  });
}

/** Ids that we or an administrator gave: uuids all of them. */
function createdId(answer: object): string | undefined {
  const id: unknown = Reflect.get(answer, 'id');
  return typeof id === 'string' ? id : undefined;
}

async function admit(
  { pool, installation }: Authority,
  operation: Operation,
  key: string,
): Promise<Caller> {
  const judge = async (db: Queryable): Promise<AuthenticatedKey> => {
    const found = await authenticate(db, installation.pepper, key);
    permit(found, operation);
    return found;
  };
  const found = await judge(pool);
  return { ...found, confirm: async (client) => void (await judge(client)) };
}

function permit({ permissions }: AuthenticatedKey, { permission }: Operation): void {
  if (permission === 'any_key' || permissions.includes(permission)) return;
  throw new ApiError('forbidden', `The application does not have the permission ${permission}`);
}

/** An id that cannot be one names nothing: 404, as for any other id that is not there. */
function readId({ params }: Operation, given: Record<string, string>): string {
  const id = given.id?.toLowerCase() ?? '';
  if (params !== undefined && !isUuid(id)) notFound();
  return id;
}

/** Whether `text` is a UUID in lower case, as Postgres prints them. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** Ends in 404, the same whether the resource never was, was deleted, or is another tenant's. */
export function notFound(): never {
  throw new ApiError('not_found', 'There is no such resource');
}
