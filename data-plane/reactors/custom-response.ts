/**
 * A CustomHttpResponseError as the whole answer: its status, headers and body, without the headers
 * that are not the script's to set.
 */
import type { Answer } from '../exchange.ts';

export interface CustomResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string | undefined;
}

/** Framing and the connection are the server's (RFC 9110 section 7.6.1, RFC 9112). */
const OF_THE_CONNECTION = [
  ...['connection', 'content-length', 'keep-alive', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'expect', 'proxy-authenticate', 'proxy-authorization'],
];
/** We send these ourselves, or they would not be true of what we send. */
const OURS = ['date', 'server', 'cache-control', 'content-encoding', 'content-type'];
/** These speak for the whole address, which is not one tenant's: its reactors share it with all. */
const OF_THE_ORIGIN = [
  ...['set-cookie', 'set-cookie2', 'clear-site-data', 'strict-transport-security', 'alt-svc'],
  ...['public-key-pins', 'expect-ct', 'report-to', 'reporting-endpoints', 'nel'],
  ...['service-worker-allowed', 'sourcemap', 'refresh'],
];
const DROPPED = new Set([...OF_THE_CONNECTION, ...OURS, ...OF_THE_ORIGIN]);
const DROPPED_PREFIXES = ['bt-', 'access-control-'];

/** Statuses that have no body (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const WITHOUT_BODY = new Set([204, 205, 304]);

const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json\b/i;

/** `status` must be 200 to 599. */
export function customAnswer({ status, headers, body }: CustomResponse): Answer {
  const kept = Object.entries(headers).filter(([name]) => isTheirs(name.toLowerCase()));
  if (body === undefined || WITHOUT_BODY.has(status)) return { status, headers: kept.flat() };
  const type = contentTypeOf(headers);
  const typed = type === undefined ? [] : ['content-type', type];
  return { status, headers: [...kept.flat(), ...typed], body: bodyOf(body, type) };
}

function isTheirs(name: string): boolean {
  return !DROPPED.has(name) && !DROPPED_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** A text goes out as it is under a content type of its own; everything else is JSON. */
function bodyOf(json: string, contentType: string | undefined): string {
  const isText = contentType !== undefined && !JSON_TYPE.test(contentType) && json.startsWith('"');
  return isText ? String(JSON.parse(json)) : json;
}

function contentTypeOf(headers: Readonly<Record<string, string>>): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
}
