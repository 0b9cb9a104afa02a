/**
 * The body of a request on its way to a destination: expressions replaced by the values of tokens, with
 * the caller's rights, then the proxy's request transform. When this is done the caller was confirmed.
 */
import { ApiError, fieldError } from '../../shared/errors.ts';
import type { TokensInUse, TokenView } from '../../shared/expressions/detokenization.ts';
import { DETOKENIZATION_OUTPUT_MAX } from '../../shared/expressions/limits.ts';
import { JSON_DEPTH_MAX } from '../../shared/json-scan.ts';
import { parseJson } from '../../shared/json-text.ts';
import { checkTokenCount, readTokenViews } from '../../shared/tokens/detokenize.ts';
import type { Answer } from '../exchange.ts';
import { recordAccess } from '../record-access.ts';
import type { Services } from '../services.ts';
import { type BodyKind, bodyKind } from './body-text.ts';
import { type DetokenizedBody, detokenizeTexts, type ExpressionTexts } from './body-texts.ts';
import { BroughtOut } from './brought-out.ts';
import { settableHeaders } from './headers.ts';
import { badGateway } from './proxy-error.ts';
import { collecting } from './script-brought-out.ts';
import { findFormTexts } from './splice-form.ts';
import { findJsonTexts } from './splice-json.ts';
import { runTransform } from './transform.ts';
import type {
  ProxyContext,
  ProxyRight,
  ProxyTransform,
  TransformedProxy,
} from './transform-context.ts';
import { FORM_FIELDS_MAX, hasTooManyFields } from './transform-form.ts';
import { headersText } from './transform-headers.ts';
import {
  type Message,
  readMessage,
  type SeenBody,
  seenJson,
  seenText,
} from './transform-message.ts';

export interface OutgoingRequest {
  /** Decoded, whole; empty when there is none. */
  readonly body: Buffer;
  readonly contentType: string | undefined;
  /** Flat, to be forwarded, names as they came; those of a decoded body's coding are gone. */
  readonly headers: readonly string[];
  readonly method: string;
  /** What follows `/proxy`. */
  readonly path: string;
  /** With its leading `?`, or empty. */
  readonly query: string;
}

export interface PreparedRequest {
  /** The very same object when nothing was put in or changed; `undefined` when there is none. */
  readonly body: Buffer | undefined;
  readonly headers: string[];
  /** What was brought out of the vault, for the tripwire; nothing when it is off. */
  readonly broughtOut: BroughtOut;
  /** Of the tokens that were put in. */
  readonly tokenIds: readonly string[];
}

/** As deep as the arguments of a reactor. */
const BODY_DEPTH_MAX = JSON_DEPTH_MAX + 1;
const ROOT = 'body';

/** Whether a body may not just stream through. */
export function mustReadBody(
  contentType: string | undefined,
  { request_transform }: Pick<TransformedProxy, 'request_transform'>,
): boolean {
  return request_transform !== null || bodyKind(contentType) !== 'other';
}

/**
 * Throws 400 for what is malformed, unknown tokens, more than 100 tokens or 5 MiB put in; 403 for
 * tokens that the caller may not use, and for any when it is anonymous; 502 for more values than the
 * tripwire can mask; what `confirm` and `right.current` throw; a `TransformError` for a transform that
 * failed. `custom`: the transform chose the whole response, and nothing is forwarded.
 */
export function prepareRequest(
  request: OutgoingRequest,
  context: ProxyContext,
  services: Services,
): Promise<PreparedRequest | { readonly custom: Answer }> {
  const { tenant_id, request_transform: transform } = context.proxy;
  const kind = bodyKind(request.contentType);
  if (transform !== null) checkParsed(request.body, kind);
  const found = findTexts(request.body, kind);
  if (found !== undefined || transform !== null) {
    return prepareChanged(found, request, context, services);
  }
  return services.gate.read(tenant_id).then((reading) => {
    context.confirm(reading);
    return prepared(request, new BroughtOut(), []);
  });
}

/** Of a body that may hold expressions, or that a transform is to see. */
async function prepareChanged(
  found: ExpressionTexts | undefined,
  request: OutgoingRequest,
  context: ProxyContext,
  services: Services,
): Promise<PreparedRequest | { readonly custom: Answer }> {
  const { tenant_id, request_transform: transform, leak_tripwire } = context.proxy;
  const broughtOut = new BroughtOut();
  const detokenized = found && (await detokenizeBody(found, request.body, context, services));
  // The script that sends this request may get it back from here.
  if (detokenized !== undefined) services.madeInRun?.(detokenized.made);
  if (detokenized === undefined) context.confirm(await services.gate.read(tenant_id));
  const body = detokenized?.body ?? request.body;
  const isWatched = leak_tripwire !== 'off';
  if (isWatched && detokenized !== undefined) addDetokenized(broughtOut, detokenized);
  let message: Message = { body, headers: request.headers };
  if (transform !== null) {
    const watched = isWatched ? collecting(broughtOut, services) : services;
    const outcome = await transformRequest(transform, { ...request, body }, context, watched);
    if ('custom' in outcome) return outcome;
    message = { body: outcome.body, headers: settableHeaders(outcome.headers) };
  }
  if (leak_tripwire === 'redact' && broughtOut.isTooMuch) throw tooMuchToMask();
  return prepared(message, broughtOut, [...(detokenized?.views.keys() ?? [])]);
}

function prepared(
  { body, headers }: Message,
  broughtOut: BroughtOut,
  tokenIds: readonly string[],
): PreparedRequest {
  return {
    body: body.length === 0 ? undefined : body,
    headers: [...headers],
    broughtOut,
    tokenIds,
  };
}

/** The data of the tokens, and what expressions made of it. */
function addDetokenized(broughtOut: BroughtOut, { views, made }: DetokenizedBody): void {
  for (const { data } of views.values()) broughtOut.add(data);
  for (const value of made) broughtOut.add(value);
}

/** Before anything is sent: afterwards the destination would have acted on it for nothing. */
function tooMuchToMask(): ApiError {
  return badGateway('More values were brought out than can be masked in an answer');
}

function findTexts(body: Buffer, kind: BodyKind): ExpressionTexts | undefined {
  if (kind === 'json') return findJsonTexts(body);
  return kind === 'form' ? findFormTexts(body) : undefined;
}

/**
 * What a transform is to see parsed must have one meaning: a member named twice, say, is one thing to
 * the transform that checks it and another to a destination that gets the body as it came.
 */
function checkParsed(body: Buffer, kind: BodyKind): void {
  if (kind === 'json' && body.length > 0) parseJson(body, BODY_DEPTH_MAX);
  if (kind === 'form' && hasTooManyFields(body.toString('latin1'))) {
    throw fieldError(ROOT, `A form may have at most ${FORM_FIELDS_MAX} fields`);
  }
}

async function detokenizeBody(
  found: ExpressionTexts,
  original: Buffer,
  context: ProxyContext,
  services: Services,
): Promise<DetokenizedBody | undefined> {
  const { right } = context;
  const detokenized = await detokenizeTexts(found, {
    requireAny: () => void userOf(right),
    readViews: (tokens) => readViewsFor(tokens, context, services),
  });
  if (detokenized === undefined) return undefined;
  if (detokenized.body.length > original.length + DETOKENIZATION_OUTPUT_MAX) {
    throw fieldError(ROOT, 'The result is too long');
  }
  services.countTokens('detokenize', detokenized.views.size);
  return detokenized;
}

async function readViewsFor(
  tokens: TokensInUse,
  context: ProxyContext,
  { readers, opener, audit }: Services,
): Promise<ReadonlyMap<string, TokenView>> {
  checkTokenCount(tokens.tokenIds.length, ROOT);
  const { tenant_id, proxy_id } = context.proxy;
  const { access, application } = userOf(context.right);
  const via = { type: 'proxy', id: proxy_id } as const;
  const origin = { head: { traceId: context.traceId }, via };
  return readTokenViews(tokens, {
    tenant_id,
    access,
    permission: 'token:use',
    readers,
    opener,
    confirm: (reading) => context.confirm(reading),
    accessed: (rows) => recordAccess('use', rows, origin, application, { audit }),
  });
}

/** By whose right tokens are used. Throws 403 for an anonymous caller. */
function userOf({ access, application }: ProxyRight) {
  if (access === undefined || application === undefined) {
    throw new ApiError('forbidden', 'A request without BT-API-KEY cannot use tokens');
  }
  return { access, application };
}

async function transformRequest(
  transform: ProxyTransform,
  request: OutgoingRequest,
  context: ProxyContext,
  services: Services,
): Promise<Message | { readonly custom: Answer }> {
  const { method, path, query, headers, body } = request;
  const seen = seenBody(request);
  const rest = JSON.stringify({ method, path, query });
  const args = `{"body":${seen.json},"headers":${headersText(headers)},${rest.slice(1)}`;
  const tooLarge = () => new ApiError('payload_too_large', 'The detokenized body is too large');
  const outcome = await runTransform(transform, args, tooLarge, context, services);
  if ('custom' in outcome) return outcome;
  return readMessage(outcome.returned, { body, headers }, seen);
}

/** What was checked as it came is sound JSON with the values of tokens in it, too. */
function seenBody({ body, contentType }: OutgoingRequest): SeenBody {
  if (body.length > 0 && bodyKind(contentType) === 'json') return seenJson(body.toString('utf8'));
  return seenText(body, contentType);
}
