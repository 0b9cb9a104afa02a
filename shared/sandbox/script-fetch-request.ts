/**
 * A fetch as a script asks for it: text from a sandbox host, read as if an attacker wrote it. What comes
 * out is safe to put on a wire: one origin, no header that frames or routes, no line break anywhere.
 */
import { fetchError } from './script-fetch-failure.ts';

export type RedirectMode = 'follow' | 'manual' | 'error';

export interface FetchRequest {
  readonly url: URL;
  readonly method: string;
  /** In the order and spelling of the script. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | undefined;
  readonly redirect: RedirectMode;
  /** Whether the script wants the body without its Content-Encoding. */
  readonly decode: boolean;
}

/** As a request to the gateway may have. */
export const REQUEST_BODY_BYTES_MAX = 5 * 1024 * 1024;
/** More than any public API accepts; most servers end at 8 KiB. */
const URL_CHARACTERS_MAX = 16 * 1024;
/** Twice what Node's own servers take. */
const HEADER_CHARACTERS_MAX = 32 * 1024;
const HEADERS_MAX = 200;
/**
 * Both of the above as JSON. Parsing blocks the process: a script that sends 8 MiB of brackets would hold
 * it for 2 s, this much for 20 ms. That is why the body is no part of the JSON.
 */
const HEAD_CHARACTERS_MAX = 64 * 1024;
const METHOD_CHARACTERS_MAX = 32;

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** RFC 9110 section 5.5, obs-text included: header values are bytes. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** They open tunnels or echo credentials (Fetch standard, "forbidden method"). */
const REFUSED_METHODS = ['CONNECT', 'TRACE', 'TRACK'];
const REDIRECT_MODES: readonly RedirectMode[] = ['follow', 'manual', 'error'];

/**
 * Headers that say where a message goes or where it ends; they are ours to write, so a script's are
 * dropped without a word, as the Fetch standard's forbidden headers are: programs forward them unread.
 */
const OWN_HEADERS = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'te', 'trailer'],
  ...['upgrade', 'http2-settings', 'expect', 'proxy-connection', 'proxy-authenticate'],
  'proxy-authorization',
]);
/** Sallyport's own headers: keys and proxy addresses of this installation are no destination's matter. */
const OWN_PREFIX = 'bt-';

/**
 * Reads `<JSON of url, method, headers, redirect, decode, body>`, and behind a line break the body as the
 * member `body` says: `text` or `base64`. Throws ScriptCallError with the first thing that is wrong.
 */
export function readFetchRequest(message: string): FetchRequest {
  const end = message.indexOf('\n');
  const head = end === -1 ? message : message.slice(0, end);
  if (head.length > HEAD_CHARACTERS_MAX) throw fetchError('headers_too_large');
  const { url, method, headers, redirect, decode, body } = parsedRecord(head);
  const mode = REDIRECT_MODES.find((one) => one === redirect);
  if (mode === undefined) throw fetchError('not_a_request');
  const verb = readMethod(method);
  return {
    url: readUrl(url),
    method: verb,
    headers: readHeaders(headers),
    body: readBody(body, end === -1 ? '' : message.slice(end + 1), verb),
    redirect: mode,
    decode: decode === true,
  };
}

/** `base`: what a redirect's location is relative to. */
export function readUrl(text: unknown, base?: URL): URL {
  if (typeof text !== 'string' || text.length > URL_CHARACTERS_MAX) throw fetchError('url');
  const url = URL.parse(text, base?.href);
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (url === null || !isHttp || url.hostname === '') throw fetchError('url');
  if (url.username !== '' || url.password !== '') throw fetchError('url');
  url.hash = '';
  return url;
}

function parsedRecord(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return { ...value };
  } catch {
    // No JSON at all: the same answer.
  }
  throw fetchError('not_a_request');
}

function readMethod(method: unknown): string {
  if (typeof method !== 'string' || method.length > METHOD_CHARACTERS_MAX || !TOKEN.test(method)) {
    throw fetchError('method');
  }
  const verb = method.toUpperCase();
  if (REFUSED_METHODS.includes(verb)) throw fetchError('method');
  return verb;
}

function readHeaders(headers: unknown): [string, string][] {
  if (!Array.isArray(headers)) throw fetchError('not_a_request');
  if (headers.length > HEADERS_MAX) throw fetchError('headers_too_large');
  const read: [string, string][] = [];
  let characters = 0;
  for (const pair of headers) {
    const [name, value]: unknown[] = Array.isArray(pair) ? pair : [];
    if (typeof name !== 'string' || !TOKEN.test(name)) throw fetchError('header_name');
    if (typeof value !== 'string' || !HEADER_VALUE.test(value)) throw fetchError('header_value');
    characters += name.length + value.length;
    if (!isOwnHeader(name)) read.push([name, value.trim()]);
  }
  if (characters > HEADER_CHARACTERS_MAX) throw fetchError('headers_too_large');
  return read;
}

function isOwnHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return OWN_HEADERS.has(lower) || lower.startsWith(OWN_PREFIX);
}

function readBody(coding: unknown, text: string, method: string): Buffer | undefined {
  if (coding === undefined) return undefined;
  if (coding !== 'text' && coding !== 'base64') throw fetchError('not_a_request');
  if (method === 'HEAD') throw fetchError('body_not_allowed');
  const body = Buffer.from(text, coding === 'text' ? 'utf8' : 'base64');
  if (body.length > REQUEST_BODY_BYTES_MAX) throw fetchError('body_too_large');
  return body;
}
