/** Reads the JSON body of a management request: bounded, UTF-8, exact (shared/json-text.ts). */

import { ApiError } from '../shared/errors.ts';
import { isJsonMediaType, isMergePatchMediaType } from '../shared/http/media-type.ts';
import { readBody } from '../shared/http/read-body.ts';
import { parseJson } from '../shared/json-text.ts';
import type { RequestContext } from './request-state.ts';

/** The largest that means anything, an application with 50 rules of 50 permissions, is 100 KiB. */
const BODY_BYTES_MAX = 1024 * 1024;

const IS_MEDIA_TYPE = {
  'application/json': isJsonMediaType,
  'application/merge-patch+json': isMergePatchMediaType,
} as const;

/** Throws 415 for another media type, 413 over 1 MiB, 400 for what is not JSON. */
export async function readJsonBody(
  ctx: Pick<RequestContext, 'req' | 'res' | 'state'>,
  mediaType: keyof typeof IS_MEDIA_TYPE = 'application/json',
): Promise<unknown> {
  if (!IS_MEDIA_TYPE[mediaType](ctx.req.headers['content-type'])) {
    throw new ApiError('unsupported_media_type', `The Content-Type must be ${mediaType}`);
  }
  // The client waits for this before it sends anything (RFC 9110 section 10.1.1).
  if (ctx.state.expectsContinue) ctx.res.writeContinue();
  const contentEncoding = ctx.req.headers['content-encoding'];
  return parseJson(await readBody(ctx.req, { limitBytes: BODY_BYTES_MAX, contentEncoding }));
}
