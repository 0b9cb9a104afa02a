/**
 * `/proxy` in the OpenAPI document. It is no operation of ours: requests and answers are whatever caller
 * and destination send each other, by any method and below any path.
 */
import { Type } from 'typebox';
import { Problem } from './problem.ts';

type Json = Record<string, unknown>;

/** Every method that is served but OPTIONS, which is answered as a preflight. */
const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete'] as const;
const WITH_BODY: readonly string[] = ['post', 'put', 'patch', 'delete'];

/** What went wrong before there was an answer of the destination. */
export const ProxyError = Type.Object({ proxy_error: Problem }, { title: 'ProxyError' });

const SUB_PATH: Json = {
  name: 'sub_path',
  in: 'path',
  required: true,
  description: 'Goes on behind the path of the destination; may have several segments',
  schema: { type: 'string' },
};

const optional = (place: 'header' | 'query', name: string, description: string): Json => ({
  ...{ name, in: place, required: false, description, schema: { type: 'string' } },
});

const PARAMETERS: readonly Json[] = [
  optional('header', 'BT-PROXY-KEY', 'Which proxy; either this or `bt-proxy-key`'),
  optional('query', 'bt-proxy-key', 'The same; taken out before the query goes on'),
  optional(
    'header',
    'BT-PROXY-URL',
    'A destination of this request alone, in place of a proxy: for the keys of private applications, ' +
      'where the operator allows it',
  ),
  optional('header', 'BT-PROXY-KEEP-ALIVE', 'Sent as `Keep-Alive`: timeout=N, max=N or both'),
  optional('header', 'BT-PROXY-CONNECTION', 'Sent as `Connection`: close or keep-alive'),
];

const ANYTHING = { '*/*': {} };

/**
 * Paths and their items. `printedError`: the schema of `ProxyError`; `apiKey`: the name of the scheme of API
 * keys, which proxies with `require_auth` ask for.
 */
export function proxyPaths(printedError: unknown, apiKey: string): Record<string, Json> {
  const answer: Json = {
    description:
      'The answer of the destination with its status, as it is. Without BT-PROXY-DESTINATION-STATUS ' +
      'there was none, and the body says why',
    headers: {
      'BT-PROXY-DESTINATION-STATUS': {
        description: 'That the destination answered, and with which status',
        schema: { type: 'integer' },
      },
      'BT-TRACE-ID': { description: 'In each answer', schema: { type: 'string' } },
    },
    content: { 'application/json': { schema: { anyOf: [printedError, {}] } }, ...ANYTHING },
  };
  const itemOf = (path: 'Proxy' | 'BelowProxy', parameters: readonly Json[]): Json => {
    const item: Json = {};
    for (const method of METHODS) {
      item[method] = {
        operationId: `${method}${path}`,
        summary: 'Forward the request to a destination, with the values of tokens in its body',
        description: 'Permission: `token:use`, unless the proxy does not ask for a key',
        tags: ['Proxies'],
        parameters: [...parameters, ...PARAMETERS],
        security: [{ [apiKey]: [] }, {}],
        ...(WITH_BODY.includes(method) ? { requestBody: { content: ANYTHING } } : {}),
        responses: { default: answer },
      };
    }
    return item;
  };
  return { '/proxy': itemOf('Proxy', []), '/proxy/{sub_path}': itemOf('BelowProxy', [SUB_PATH]) };
}
