/** One HTTP request of a test, sent as it is told and answered with everything that came back. */

export interface Call {
  key?: string | undefined;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is; needs its own content type. */
  body?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
}

/** Any JSON object, for reading members without a type of their own. */
export type JsonObject = Record<string, unknown>;

export interface Answer<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed JSON, or `undefined` for an empty body. */
  readonly body: T;
}

/** Sends `METHOD /path` to `baseUrl`, e.g. `call(url, 'GET /tokens', { key })`. */
export async function call<T = JsonObject>(
  baseUrl: string,
  line: string,
  { key, json, body, headers = {} }: Call = {},
): Promise<Answer<T>> {
  const [method = '', path = ''] = line.split(' ');
  const given: Record<string, string> = { ...headers };
  if (key !== undefined) given['bt-api-key'] = key;
  if (json !== undefined) given['content-type'] ??= 'application/json';
  const sent = json === undefined ? body : JSON.stringify(json);
  const response = await fetch(baseUrl + path, {
    method,
    headers: given,
    ...(sent === undefined ? {} : { body: sent }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (text === '' ? undefined : JSON.parse(text)) as T,
  };
}
