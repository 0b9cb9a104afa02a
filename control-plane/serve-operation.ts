/**
 * Carries out one operation of the contract: authenticate, permit, look for a kept answer, read path and
 * query, validate the body, handle, answer. What an operation requires is written in shared/api and nowhere else.
 */
import type { KeyObject } from 'node:crypto';
import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { AnswerOf, BodyOf, Operation } from '../shared/api/operation.ts';
import { compileValidator } from '../shared/api/validate.ts';
import type { DataKeys } from '../shared/crypto/data-keys.ts';
import { ApiError } from '../shared/errors.ts';
import { JSON_MEDIA_TYPE } from '../shared/http/media-type.ts';
import { parseQuery, type QueryParams } from '../shared/http/query.ts';
import type { KeptAnswer } from '../shared/idempotency/kept-answer.ts';
import { type NotDone, runOnce } from '../shared/idempotency/run-once.ts';
import type { Queryable } from '../shared/postgres/pool.ts';
import { auditDenial } from './audit-change.ts';
import { type AuthenticatedKey, authenticate, type Caller } from './authenticate.ts';
import { answerOf, claimOf, findKeptAnswer } from './keep-answer.ts';
import { readJsonBody } from './read-json-body.ts';
import type { RequestState } from './request-state.ts';

const IDEMPOTENCY_HEADER = 'bt-idempotency-key';
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
  dataKeys: DataKeys;
  installation: { readonly pepper: KeyObject };
  countNotDone(why: NotDone): void;
}

/** Serves `operation` by `carry` at its method and path. */
export function addOperation<O extends Operation>(
  router: Router<RequestState>,
  authority: Authority,
  operation: O,
  carry: Carry<O>,
): void {
  const validate = operation.body === undefined ? undefined : compileValidator(operation.body);
  const path = operation.path.replaceAll(/\{(\w+)\}/g, ':$1');
  router.register(path, [operation.method], async (ctx: RouterContext<RequestState>) => {
    ctx.state.operation = operation;
    const caller = await admittedCaller(ctx, authority, operation);
    let body: Promise<unknown> | undefined;
    const run = async (): Promise<KeptAnswer> => {
      const params = { id: readId(operation, ctx.params) };
      const query = parseQuery(ctx.querystring);
      body ??= validate && readJsonBody(ctx, operation.mediaType);
      const request = { caller, params, query, body: validate?.(await body) };
      return answerOf(operation, await carry(request as OperationRequest<O>));
    };
    const claim = caller?.claim;
    const look = async () => claim && findKeptAnswer(claim, authority);
    const notDone = (why: NotDone): void => {
      authority.countNotDone(why);
      ctx.state.replayed = why === 'replayed';
    };
    writeAnswer(ctx, claim === undefined ? await run() : await runOnce({ look, run, notDone }));
  });
}

/** `undefined` for operations that need no key. */
async function admittedCaller(
  ctx: RouterContext<RequestState>,
  authority: Authority,
  operation: Operation,
): Promise<Caller | undefined> {
  if (operation.permission === 'no_key') return undefined;
  const caller = await admit(ctx, authority, operation);
  ctx.state.caller = caller;
  const header = ctx.req.headers[IDEMPOTENCY_HEADER];
  // Two of them are joined by a comma and a space: no key.
  const key = Array.isArray(header) ? header.join(', ') : header;
  const id = ctx.params.id?.toLowerCase() ?? '';
  const claim = await claimOf(operation, key, id, caller, authority.dataKeys);
  if (claim !== undefined) caller.claim = claim;
  return caller;
}

function writeAnswer(
  ctx: RouterContext<RequestState>,
  { status, headers = [], body }: KeptAnswer,
): void {
  ctx.status = status;
  for (let index = 0; index + 1 < headers.length; index += 2) {
    ctx.set(headers[index] as string, headers[index + 1] as string);
  }
  if (body === undefined) return;
  ctx.type = JSON_MEDIA_TYPE;
  ctx.body = body;
}

async function admit(
  ctx: RouterContext<RequestState>,
  { pool, installation }: Authority,
  operation: Operation,
): Promise<Caller> {
  const origin = { operation, trace_id: ctx.state.traceId };
  const judge = (db: Queryable) => authenticate(db, installation.pepper, ctx.get('bt-api-key'));
  const found = await judge(pool);
  if (!isPermitted(found, operation)) {
    const id = ctx.params.id?.toLowerCase() ?? '';
    await auditDenial(pool, origin, found, isUuid(id) ? id : undefined);
    throw forbidden(operation);
  }
  return {
    ...{ ...found, origin },
    confirm: async (client) => {
      if (!isPermitted(await judge(client), operation)) throw forbidden(operation);
    },
  };
}

function isPermitted({ permissions }: AuthenticatedKey, { permission }: Operation): boolean {
  return permission === 'any_key' || permissions.includes(permission);
}

function forbidden({ permission }: Operation): ApiError {
  const detail = `The application does not have the permission ${permission}`;
  return new ApiError('forbidden', detail);
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
