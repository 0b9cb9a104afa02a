/** The JSON body of a token request, refused by its media type before it is read. */
import { ApiError } from '../../shared/errors.ts';
import { isJsonMediaType, isMergePatchMediaType } from '../../shared/http/media-type.ts';
import type { Exchange } from '../exchange.ts';

/** Most bytes of a token request (design section 12). */
const BODY_BYTES_MAX = 1024 * 1024;

const MEDIA_TYPES = {
  json: { matches: isJsonMediaType, name: 'application/json' },
  merge_patch: { matches: isMergePatchMediaType, name: 'application/merge-patch+json' },
};

/** Throws 415 unless the body is announced as `kind` in UTF-8, 413 above `limitBytes`. */
export function readTokenBody(
  exchange: Exchange,
  kind: keyof typeof MEDIA_TYPES,
  limitBytes = BODY_BYTES_MAX,
): Promise<unknown> {
  const { matches, name } = MEDIA_TYPES[kind];
  if (!matches(exchange.head.contentType)) {
    throw new ApiError('unsupported_media_type', `The Content-Type must be ${name} in UTF-8`);
  }
  return exchange.json(limitBytes);
}
