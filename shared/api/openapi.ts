/**
 * The OpenAPI 3.1 document, generated from the operations and `/proxy`: never edited, so never out of date.
 * Schemas with a title become components; all others are written where they are used.
 */
import type { TObject, TSchema } from 'typebox';
import { ProxyError, proxyPaths } from './openapi-proxy.ts';
import { type Operation, takesIdempotencyKey } from './operation.ts';
import { Problem } from './problem.ts';

type Json = Record<string, unknown>;

const API_KEY = 'api_key';

/** What a status means, for descriptions. */
const STATUS_TEXT: Record<number, string> = {
  200: 'Success',
  201: 'Created',
  202: 'Accepted',
  204: 'Success, no content',
  400: 'The request is not valid; `errors` names the members',
  401: 'No valid API key was presented',
  403: 'The key does not allow this',
  404: 'There is no such resource in the tenant',
  409: 'The request conflicts with the state of the resource',
  413: 'The body is too large',
  415: 'The media type is not served',
};

/** The document of `operations`. Pure; the result is the caller's own. */
export function openApiDocument(operations: readonly Operation[], version: string): Json {
  const components: Json = {};
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const method = operation.method.toLowerCase();
    paths[operation.path] = { ...paths[operation.path], [method]: describe(operation, components) };
  }
  Object.assign(paths, proxyPaths(printSchema(ProxyError, components), API_KEY));
  return {
    openapi: '3.1.0',
    info: { title: 'Sallyport', version, description: 'Tokenization vault and gateway' },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: components,
      securitySchemes: { [API_KEY]: { type: 'apiKey', in: 'header', name: 'BT-API-KEY' } },
    },
  };
}

function describe(operation: Operation, components: Json): Json {
  const { operationId, summary, tag, body, permission } = operation;
  const described: Json = {
    operationId,
    summary,
    tags: [tag],
    security: permission === 'no_key' ? [] : [{ [API_KEY]: [] }],
    responses: describeResponses(operation, components),
  };
  if (permission.includes(':')) described.description = `Permission: \`${permission}\``;
  const parameters = [
    ...describeParameters(operation.params, 'path', components),
    ...describeParameters(operation.query, 'query', components),
    ...(operation.transactional === true ? [TRANSACTION_HEADER] : []),
    ...(takesIdempotencyKey(operation) ? [IDEMPOTENCY_HEADER] : []),
  ];
  if (parameters.length > 0) described.parameters = parameters;
  if (body !== undefined) {
    const mediaType = operation.mediaType ?? 'application/json';
    const content = { [mediaType]: { schema: printSchema(body, components) } };
    described.requestBody = { required: operation.bodyOptional !== true, content };
  }
  return described;
}

const TRANSACTION_HEADER: Json = {
  name: 'BT-TRANSACTION-ID',
  in: 'header',
  required: false,
  description: 'The open transaction with which this takes effect',
  schema: { type: 'string', format: 'uuid' },
};

const IDEMPOTENCY_HEADER: Json = {
  name: 'BT-IDEMPOTENCY-KEY',
  in: 'header',
  required: false,
  description:
    'For 24 hours, a request of the same application to the same path with the same key is answered ' +
    'as the first that succeeded, and has no effect of its own. 409 while that one is under way',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
};

function describeParameters(
  schema: TObject | undefined,
  place: 'path' | 'query',
  components: Json,
): Json[] {
  return Object.entries(schema?.properties ?? {}).map(([name, member]) => {
    const printed = printSchema(member, components) as Json;
    const parameter: Json = { name, in: place, required: place === 'path', schema: printed };
    // `metadata[key]=value`; `metadata.key=value` is served too, which OpenAPI cannot say.
    if (place === 'query' && printed.type === 'object') parameter.style = 'deepObject';
    return parameter;
  });
}

function describeResponses(operation: Operation, components: Json): Json {
  const described: Json = {};
  const { responses } = operation;
  const all = takesIdempotencyKey(operation) ? { 409: Problem, ...responses } : responses;
  for (const [status, schema] of Object.entries(all)) {
    const response: Json = { description: STATUS_TEXT[Number(status)] ?? 'Error' };
    if (schema !== null) {
      const mediaType = Number(status) < 400 ? 'application/json' : 'application/problem+json';
      response.content = { [mediaType]: { schema: printSchema(schema, components) } };
    }
    described[status] = response;
  }
  return described;
}

/** A copy of a schema in which every titled one is a reference to a component. */
function printSchema(schema: TSchema, components: Json): unknown {
  return printMember(JSON.parse(JSON.stringify(schema)), components);
}

function printMember(value: unknown, components: Json): unknown {
  if (Array.isArray(value)) return value.map((item) => printMember(item, components));
  if (typeof value !== 'object' || value === null) return value;
  const printed: Json = {};
  for (const [name, member] of Object.entries(value))
    printed[name] = printMember(member, components);
  if (typeof printed.title !== 'string') return printed;
  components[printed.title] = printed;
  return { $ref: `#/components/schemas/${printed.title}` };
}
