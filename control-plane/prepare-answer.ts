/**
 * What every request gets before it is routed: a trace id, the headers every answer carries, a
 * checked target. Forwarded headers are believed from our own relay only.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Next } from 'koa';
import { ApiError } from '../shared/errors.ts';
import { CORS_HEADERS, PREFLIGHT_HEADERS } from '../shared/http/cors.ts';
import { condemn } from '../shared/http/listener.ts';
import { ALLOW_HEADER } from '../shared/http/methods.ts';
import { discardBody } from '../shared/http/read-body.ts';
import { checkRequest, HEADERS_MAX, type RefusedRequest } from '../shared/http/strict-request.ts';
import { acceptTraceId } from '../shared/http/trace-id.ts';
import type { RequestContext } from './request-state.ts';

/** By this header the data plane's relay shows itself; the value never leaves the installation. */
const RELAY_HEADER = 'sallyport-relay';
/** What the relay may add to the headers of a request that it has checked. */
const RELAY_HEADERS_MAX = 8;

interface AnswerOptions {
  installation: { readonly relaySecret: string };
  isDraining(): boolean;
}

/** Sets `bt-trace-id`, `Cache-Control: no-store` and the CORS headers on every answer. */
export function prepareAnswer({ installation, isDraining }: AnswerOptions) {
  return async (ctx: RequestContext, next: Next): Promise<void> => {
    ctx.state.isRelayed = isSecret(ctx.get(RELAY_HEADER), installation.relaySecret);
    ctx.state.traceId = acceptTraceId(ctx.state.isRelayed ? ctx.get('bt-trace-id') : undefined);
    ctx.set('bt-trace-id', ctx.state.traceId);
    ctx.set('cache-control', 'no-store');
    setFlat(ctx, CORS_HEADERS);
    await next();
    if (isDraining()) ctx.set('connection', 'close');
  };
}

function isSecret(presented: string, secret: string): boolean {
  const given = Buffer.from(presented);
  const expected = Buffer.from(secret);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/**
 * What the public port refuses is refused here, too: this port may be reached without a relay in between.
 * Answers `OPTIONS` on any path.
 */
export async function checkHead(ctx: RequestContext, next: Next): Promise<void> {
  const { method = '', url = '', httpVersion, rawHeaders } = ctx.req;
  const headersMax = HEADERS_MAX + (ctx.state.isRelayed ? RELAY_HEADERS_MAX : 0);
  const head = checkRequest(method, url, httpVersion, rawHeaders, headersMax);
  if (!head.ok) throw await refused(ctx, head);
  if (head.method === 'OPTIONS') {
    setFlat(ctx, PREFLIGHT_HEADERS);
    ctx.status = 204;
    return;
  }
  ctx.state.expectsContinue = head.expectsContinue;
  // Without its trailing slash: the same path (design section 12).
  ctx.path = head.path;
  await next();
}

/** Behind a request that is refused with `close` nothing on its connection can be trusted. */
async function refused({ req }: RequestContext, { code, detail, close }: RefusedRequest) {
  const headers: Record<string, string> =
    code === 'method_not_allowed' ? { allow: ALLOW_HEADER } : {};
  if (close) {
    condemn(req.socket);
    headers.connection = 'close';
    await discardBody(req);
  }
  return new ApiError(code, detail, { headers });
}

/** The last middleware: nothing served the request. `matched` is what the router found by path. */
export function refuseUnmatched(ctx: RequestContext & { matched?: { methods: string[] }[] }): void {
  const methods = new Set(ctx.matched?.flatMap((layer) => layer.methods));
  if (methods.size > 0) throw methodNotAllowed([...methods, 'OPTIONS'].join(', '));
  throw new ApiError('not_found', 'There is no such path; /openapi.json lists what there is');
}

function methodNotAllowed(allow: string): ApiError {
  return new ApiError('method_not_allowed', 'This method is not served here', {
    headers: { allow },
  });
}

function setFlat(ctx: RequestContext, headers: readonly string[]): void {
  for (let index = 0; index + 1 < headers.length; index += 2) {
    ctx.set(headers[index] as string, headers[index + 1] as string);
  }
}
