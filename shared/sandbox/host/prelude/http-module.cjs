/** What the modules `http` and `https` consist of, but for their protocol. */
const { ClientRequest } = require('http-request');
const { IncomingMessage } = require('http-message');
const { readArguments } = require('http-target');

/** Accepted and without effect: connections are the gateway's. */
class Agent {
  constructor(options = {}) {
    this.options = { ...options };
    this.keepAlive = Boolean(options.keepAlive);
    this.maxSockets = options.maxSockets ?? Number.POSITIVE_INFINITY;
    this.requests = {};
    this.sockets = {};
    this.freeSockets = {};
  }

  destroy() {}
}

const METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'];
const STATUS_CODES = {
  ...{ 200: 'OK', 201: 'Created', 202: 'Accepted', 204: 'No Content', 206: 'Partial Content' },
  ...{ 301: 'Moved Permanently', 302: 'Found', 303: 'See Other', 304: 'Not Modified' },
  ...{ 307: 'Temporary Redirect', 308: 'Permanent Redirect', 400: 'Bad Request' },
  ...{ 401: 'Unauthorized', 402: 'Payment Required', 403: 'Forbidden', 404: 'Not Found' },
  ...{ 405: 'Method Not Allowed', 406: 'Not Acceptable', 408: 'Request Timeout', 409: 'Conflict' },
  ...{ 410: 'Gone', 412: 'Precondition Failed', 413: 'Payload Too Large' },
  ...{ 415: 'Unsupported Media Type', 422: 'Unprocessable Entity', 429: 'Too Many Requests' },
  ...{ 500: 'Internal Server Error', 501: 'Not Implemented', 502: 'Bad Gateway' },
  ...{ 503: 'Service Unavailable', 504: 'Gateway Timeout' },
};

function createServer() {
  const error = new Error('Servers are not available here.');
  error.code = 'ERR_NOT_AVAILABLE';
  throw error;
}

/** The module for `https:` or `http:`. */
exports.moduleOf = (protocol) => {
  const OwnAgent = class extends Agent {
    get protocol() {
      return protocol;
    }
  };
  Object.defineProperty(OwnAgent, 'name', { value: 'Agent' });
  const request = (...args) => {
    const { options, callback } = readArguments(args);
    return new ClientRequest(protocol, options, callback);
  };
  const get = (...args) => request(...args).end();
  return {
    ...{ request, get, Agent: OwnAgent, globalAgent: new OwnAgent(), createServer },
    ...{ ClientRequest, IncomingMessage, METHODS, STATUS_CODES },
  };
};
