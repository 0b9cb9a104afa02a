/**
 * What every request gets before it is routed: a trace id, the headers every answer carries, a
 * checked target. Forwarded headers are believed from our own relay only.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Next } from 'koa';
import { ApiError } from '../shared/errors.ts';
import { CORS_HEADERS, PREFLIGHT_HEADERS } from '../shared/http/cors.ts';
import { ALLOW_HEADER, isServedMethod } from '../shared/http/methods.ts';
import { readTarget, type Target } from '../shared/http/request-target.ts';
import { acceptTraceId } from '../shared/http/trace-id.ts';
import type { RequestContext } from './request-state.ts';

/** By this header the data plane's relay shows itself; the value never leaves the installation. */
const RELAY_HEADER = 'sallyport-relay';

interface AnswerOptions {
  installation: { readonly relaySecret: string };
  isDraining(): boolean;
}

/** Sets `bt-trace-id`, `Cache-Control: no-store` and the CORS headers on every answer. */
export function prepareAnswer({ installation, isDraining }: AnswerOptions) {
  return async (ctx: RequestContext, next: Next): Promise<void> => {
    const isRelayed = isSecret(ctx.get(RELAY_HEADER), installation.relaySecret);
    ctx.state.traceId = acceptTraceId(isRelayed ? ctx.get('bt-trace-id') : undefined);
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

/** Refuses methods and targets that no route could mean; answers `OPTIONS` on any path. */
export async function checkRequestLine(ctx: RequestContext, next: Next): Promise<void> {
  if (!isServedMethod(ctx.method)) throw methodNotAllowed(ALLOW_HEADER);
  const target: Target = { path: '', query: '' };
  const refusal = readTarget(ctx.req.url ?? '', target);
  if (refusal !== undefined) {
    const headers: Record<string, string> = refusal.close ? { connection: 'close' } : {};
    throw new ApiError(refusal.code, refusal.detail, { headers });
  }
  checkExpectation(ctx.req.headers.expect);
  if (ctx.method === 'OPTIONS') {
    setFlat(ctx, PREFLIGHT_HEADERS);
    ctx.status = 204;
    return;
  }
  // Without its trailing slash: the same path (design section 12).
  ctx.path = target.path;
  await next();
}

function checkExpectation(expect: string | undefined): void {
  if (expect === undefined || expect.toLowerCase() === '100-continue') return;
  throw new ApiError('expectation_failed', 'The only expectation served is 100-continue', {
    headers: { connection: 'close' },
  });
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
