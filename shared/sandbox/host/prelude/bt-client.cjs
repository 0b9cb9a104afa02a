/**
 * `req.bt`: the client that reactors have for tokens and other reactors. It holds no key and no address:
 * each call is a text to the gateway, which carries it out with the rights of the script's application.
 */
const { parse, stringify } = JSON;
const { isArray } = Array;
const { keys } = Object;
const encode = encodeURIComponent;

/** Loaded with the first call: most runs make none. */
const names = () => require('case-conversion');

/** What a call without an answer has for a status. */
const NO_STATUS = -1;

class BasisTheoryApiError extends Error {
  constructor(message, status, data) {
    super(message);
    this.name = 'BasisTheoryApiError';
    this.status = status;
    this.data = data;
  }
}

/** The call has the rights of the script's application and no others, and is in no transaction. */
function refuseOptions(options) {
  for (const name of ['apiKey', 'transactionId']) {
    if (options?.[name] !== undefined && options[name] !== null) {
      throw new BasisTheoryApiError(`The option ${name} is not available in a reactor.`, NO_STATUS);
    }
  }
}

/** Members named here are the customer's own, and so is every name inside them. */
function keepData(converted, original) {
  for (const name of ['data', 'metadata']) {
    if (original[name] !== undefined) converted[name] = original[name];
  }
  return converted;
}

function tokenRequest(token) {
  if (typeof token !== 'object' || token === null) return token;
  return keepData(names().toSnakeCase(token), token);
}

const isToken = (body) => typeof body === 'object' && body !== null;

function tokenAnswer(body) {
  if (!isToken(body)) return body;
  const { pagination, data } = body;
  if (!pagination || !isArray(data)) return keepData(names().toCamelCase(body), body);
  const { toCamelCase } = names();
  return {
    data: data.map((token) => keepData(toCamelCase(token), token)),
    pagination: toCamelCase(pagination),
  };
}

function parameter(name, value) {
  const isPlain = value === null || ['boolean', 'number', 'string'].includes(typeof value);
  return isPlain ? [`${encode(name.toWellFormed())}=${encode(`${value}`.toWellFormed())}`] : [];
}

/** Lists repeat their name; of an object each member becomes `name.member`, spelled as it is. */
function queryText(query = {}) {
  const { snakeParameter } = names();
  const parts = keys(query).flatMap((name) => {
    const value = query[name];
    if (isArray(value)) return value.flatMap((item) => parameter(snakeParameter(name), item));
    if (typeof value !== 'object' || value === null) return parameter(snakeParameter(name), value);
    return keys(value).flatMap((member) => parameter(`${name}.${member}`, value[member]));
  });
  return parts.join('&');
}

const asIs = (body) => body;

/** Loaded with the first call, as `names` is. */
const proxyMessage = () => require('bt-proxy');

/** `call`: of calls.cjs. */
module.exports = function createClient(call) {
  async function ask(message) {
    try {
      return parse(await call('bt', stringify(message)).answer);
    } catch (error) {
      const failed = new BasisTheoryApiError(error.message, NO_STATUS);
      failed.code = error.code;
      throw failed;
    }
  }

  function settle(status, data, value) {
    if (status >= 200 && status < 300) return value;
    throw new BasisTheoryApiError(`Request failed with status code ${status}`, status, data);
  }

  async function send(operation, request, options, convert) {
    refuseOptions(options);
    const { status, body } = await ask({ operation, ...request });
    const converted = convert(body);
    return settle(status, converted, converted);
  }

  async function sendProxy(method, options) {
    refuseOptions(options);
    const { requestOf, dataOf, headersOf } = proxyMessage();
    const answer = await ask(requestOf(method, options ?? {}));
    const data = dataOf(answer);
    const withHeaders = options?.includeResponseHeaders;
    return settle(answer.status, data, withHeaders ? { data, headers: headersOf(answer) } : data);
  }

  const sendToken = (operation, request, options) => send(operation, request, options, tokenAnswer);
  const tokenBody = (token) => stringify(tokenRequest(token));

  return {
    tokens: {
      create: async (token, options) =>
        sendToken('createToken', { body: tokenBody(token) }, options),
      retrieve: async (id, options) => sendToken('getToken', { id: `${id}` }, options),
      update: async (id, token, options) =>
        sendToken('updateToken', { id: `${id}`, body: tokenBody(token) }, options),
      delete: async (id, options) => {
        await sendToken('deleteToken', { id: `${id}` }, options);
      },
      list: async (query, options) => sendToken('listTokens', { query: queryText(query) }, options),
      search: async (query, options) =>
        sendToken('searchTokens', { body: tokenBody(query) }, options),
    },
    reactors: {
      react: async (id, request, options) =>
        send('react', { id: `${id}`, body: stringify(request) }, options, asIs),
    },
    proxy: {
      get: async (options) => sendProxy('GET', options),
      post: async (options) => sendProxy('POST', options),
      put: async (options) => sendProxy('PUT', options),
      patch: async (options) => sendProxy('PATCH', options),
      delete: async (options) => sendProxy('DELETE', options),
    },
    tokenize: async (values, options) =>
      send('tokenize', { body: stringify(values) }, options, asIs),
    detokenize: async (values, options) =>
      send('detokenize', { body: stringify(values) }, options, asIs),
  };
};
