/**
 * The answer of a destination on its way back, through the proxy's response transform. Only for answers
 * of 2xx: any other is the caller's as it is (facts 2.3).
 */
import { scanPassedJson } from '../../shared/json-scan.ts';
import type { Answer } from '../exchange.ts';
import type { Services } from '../services.ts';
import { bodyKind, utf8Text, withoutByteOrderMark } from './body-text.ts';
import { withoutHeader } from './headers.ts';
import { runTransform } from './transform.ts';
import type { ProxyContext, ProxyTransform } from './transform-context.ts';
import { runtimeProblem } from './transform-failure.ts';
import { headersText } from './transform-headers.ts';
import {
  PASSED_DEPTH_MAX,
  readMessage,
  type SeenBody,
  seenJson,
  seenText,
} from './transform-message.ts';

export interface IncomingResponse {
  /** Decompressed, whole; empty when there is none. */
  readonly body: Buffer;
  readonly contentType: string | undefined;
  /** Flat, as the destination sent them. */
  readonly headers: readonly string[];
}

export interface TransformedResponse {
  /** As it goes out, uncompressed. */
  readonly body: Buffer;
  readonly headers: string[];
}

const TOO_LARGE = 'The answer of the destination is too large for a transform.';

/**
 * Throws a `TransformError` when the transform failed, and what `right.current` throws. `custom`: the
 * transform chose the whole response.
 */
export async function transformResponse(
  transform: ProxyTransform,
  { body, contentType, headers }: IncomingResponse,
  context: ProxyContext,
  services: Services,
): Promise<TransformedResponse | { readonly custom: Answer }> {
  // It names the coding of what came, not of what goes out.
  const plain = withoutHeader(headers, 'content-encoding');
  const seen = seenBody(body, contentType);
  const args = `{"body":${seen.json},"headers":${headersText(plain)}}`;
  const tooLarge = () => runtimeProblem(TOO_LARGE);
  const outcome = await runTransform(transform, args, tooLarge, context, services);
  if ('custom' in outcome) return outcome;
  const message = readMessage(outcome.returned, { body, headers: plain }, seen);
  return { body: message.body, headers: withoutHeader(message.headers, 'content-encoding') };
}

/** What claims to be JSON and is none is text: nobody can be told to send it better. */
function seenBody(body: Buffer, contentType: string | undefined): SeenBody {
  const text = bodyKind(contentType) === 'json' ? utf8Text(body) : undefined;
  const json = text === undefined ? '' : withoutByteOrderMark(text);
  return isJson(json) ? seenJson(json) : seenText(body, contentType);
}

function isJson(text: string): boolean {
  try {
    scanPassedJson(Buffer.from(text), PASSED_DEPTH_MAX);
    return true;
  } catch {
    return false;
  }
}
