/**
 * Where a request of `http.request` goes, from its URL and options. The parts are put together so that
 * none of them can change another: a path must never become a host.
 */
const { URL } = require('node-url');

function refuse(message, code) {
  const error = new TypeError(message);
  error.code = code;
  throw error;
}

/** What a host name has to be free of: characters that end it in a URL. */
const HOST_END = /[\s/\\?#@%]/;
const PATH_REFUSED = /[\0-\x20\x7f]/;

/** The options of a URL object or text, as `url.urlToHttpOptions` names them. */
function optionsOfUrl(value) {
  const { protocol, hostname, port, pathname, search, username, password } = new URL(value);
  const options = { protocol, hostname, path: `${pathname}${search}` };
  if (port !== '') options.port = port;
  if (username !== '' || password !== '') {
    options.auth = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  }
  return options;
}

/** `(url[, options][, callback])` as one object of options and the callback. */
function readArguments(args) {
  const list = [...args];
  const callback = typeof list.at(-1) === 'function' ? list.pop() : undefined;
  const first = list.shift();
  const isUrl = typeof first === 'string' || first instanceof URL;
  const options = isUrl ? { ...optionsOfUrl(first), ...list[0] } : { ...first };
  return { options, callback };
}

function hostOf(options, protocol) {
  const host = `${options.hostname ?? options.host ?? 'localhost'}`;
  if (HOST_END.test(host)) refuse('The host is not valid.', 'ERR_INVALID_ARG_VALUE');
  const bare = host.replace(/^\[|\]$/g, '');
  const colons = bare.split(':').length - 1;
  // `host` may name the port as well, as in a URL.
  const [name, named] = colons === 1 ? bare.split(':') : [colons > 1 ? `[${bare}]` : bare, ''];
  const port = `${options.port ?? (named || options.defaultPort || '')}`;
  if (port !== '' && !/^\d{1,5}$/.test(port)) {
    refuse('The port is not valid.', 'ERR_SOCKET_BAD_PORT');
  }
  return `${protocol}//${name}${port === '' ? '' : `:${port}`}`;
}

/** The URL as text. `protocol`: of the module that was called, `https:` or `http:`. */
function urlOf(options, protocol) {
  const named = options.protocol ?? options.agent?.protocol ?? protocol;
  if (named !== protocol)
    refuse('The protocol is not the one of this module.', 'ERR_INVALID_PROTOCOL');
  if (options.socketPath !== undefined && options.socketPath !== null) {
    refuse('Local sockets are not available here.', 'ERR_INVALID_ARG_VALUE');
  }
  const path = `${options.path ?? '/'}`;
  if (PATH_REFUSED.test(path)) {
    refuse('The path has characters that are not allowed.', 'ERR_UNESCAPED_CHARACTERS');
  }
  const origin = new URL(hostOf(options, protocol)).origin;
  return new URL(`${origin}${path.startsWith('/') ? '' : '/'}${path}`).href;
}

exports.readArguments = readArguments;
exports.urlOf = urlOf;
