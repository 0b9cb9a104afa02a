/**
 * Where an answer of this plane's own, or an error, becomes status, headers and body; those of destinations are
 * written by proxy/response.ts. Headers go to `writeHead` as one flat array, the body in one `end` with its length.
 */
import type { ServerResponse } from 'node:http';
import { ApiError } from '../shared/errors.ts';
import { CORS_HEADERS, PREFLIGHT_HEADERS } from '../shared/http/cors.ts';
import { JSON_MEDIA_TYPE, PROBLEM_MEDIA_TYPE } from '../shared/http/media-type.ts';
import type { FailureLog } from '../shared/observability/failure-log.ts';
import { translateDatabaseError } from '../shared/postgres/database-error.ts';
import type { Answer } from './exchange.ts';

const COMMON_HEADERS = ['cache-control', 'no-store', ...CORS_HEADERS];

/** A caller that takes nothing of a large answer for so long loses its connection: the answer is in memory. */
const STALL_MS = 25_000;
/** What the system's buffers surely take at once needs no watching. */
const STALL_LENGTH_MIN = 64 * 1024;

export interface ResponseContext {
  traceId: string;
  /** The connection must not be used again: refused framing, an unread body, or a drain. */
  close: boolean;
}

export function writeAnswer(
  res: ServerResponse,
  { status, body, headers }: Answer,
  context: ResponseContext,
  mediaType = JSON_MEDIA_TYPE,
  stallMs = STALL_MS,
): void {
  if (res.headersSent || res.destroyed) return;
  const flat = ['bt-trace-id', context.traceId, ...COMMON_HEADERS];
  if (body !== undefined) {
    // The answer's own content type goes before: few have one, fewer have any headers.
    if (headers === undefined || !headers.includes('content-type')) {
      flat.push('content-type', mediaType);
    }
    flat.push('content-length', String(Buffer.byteLength(body)));
  } else if (status !== 204) {
    flat.push('content-length', '0');
  }
  if (headers !== undefined) flat.push(...headers);
  if (context.close) flat.push('connection', 'close');
  res.writeHead(status, flat);
  res.end(body);
  if (body !== undefined && body.length > STALL_LENGTH_MIN) res.setTimeout(stallMs);
}

/** `OPTIONS` on any path: a preflight carries no key. */
export function writePreflight(res: ServerResponse, { traceId, close }: ResponseContext): void {
  const flat = ['bt-trace-id', traceId, ...PREFLIGHT_HEADERS];
  if (close) flat.push('connection', 'close');
  res.writeHead(204, flat);
  res.end();
}

/** Any error as problem details. What is not an `ApiError` is a fault of ours: 500, and logged. */
export function writeError(
  res: ServerResponse,
  error: unknown,
  context: ResponseContext,
  logFailure: FailureLog,
): number {
  const translated = translateDatabaseError(error);
  const apiError =
    translated instanceof ApiError
      ? translated
      : new ApiError('internal', 'An unexpected error occurred; the trace id finds it in the log');
  if (apiError.status >= 500) logFailure(translated, context.traceId);
  const headers = Object.entries(apiError.headers ?? {});
  const close = context.close || headers.some(([name]) => name === 'connection');
  const answer: Answer = {
    status: apiError.status,
    body: JSON.stringify(apiError.toProblem()),
    headers: headers.filter(([name]) => name !== 'connection').flat(),
  };
  writeAnswer(res, answer, { traceId: context.traceId, close }, PROBLEM_MEDIA_TYPE);
  return apiError.status;
}
