/** `DOMException` (WHATWG Web IDL): the errors of abort, timeout and quota, with their old numbers. */
const CODES = {
  __proto__: null,
  IndexSizeError: 1,
  NotFoundError: 8,
  NotSupportedError: 9,
  InvalidStateError: 11,
  SyntaxError: 12,
  InvalidAccessError: 15,
  NetworkError: 19,
  AbortError: 20,
  QuotaExceededError: 22,
  TimeoutError: 23,
  DataCloneError: 25,
};

class DOMException extends Error {
  #name;

  constructor(message = '', options = 'Error') {
    const isName = typeof options !== 'object' || options === null;
    super(`${message}`, !isName && 'cause' in options ? { cause: options.cause } : undefined);
    this.#name = isName ? `${options}` : `${options.name ?? 'Error'}`;
  }

  get name() {
    return this.#name;
  }

  get code() {
    return CODES[this.#name] ?? 0;
  }
}

for (const name of Object.keys(CODES)) {
  const constant = name.replace(/Error$/, '').replace(/(?!^)([A-Z])/g, '_$1');
  const descriptor = { value: CODES[name], enumerable: true };
  Object.defineProperty(DOMException, `${constant.toUpperCase()}_ERR`, descriptor);
}

exports.DOMException = DOMException;
