/**
 * The error classes that reactors throw to choose their answer, written from the documented behaviour:
 * names, statuses and the normalisation of `errors`.
 */
const FALLBACK = 'The reactor failed without a message.';

/** Never throws on cycles: an object already being printed becomes `[Circular]`. */
function printJson(value) {
  const above = [];
  return JSON.stringify(value, function (_key, item) {
    if (typeof item === 'bigint') return String(item);
    if (typeof item !== 'object' || item === null) return item;
    while (above.length > 0 && above[above.length - 1] !== this) above.pop();
    if (above.includes(item)) return '[Circular]';
    above.push(item);
    return item;
  });
}

function text(value) {
  if (typeof value === 'string') return value;
  if (value instanceof Error) return value.message || value.name;
  if (typeof value === 'object' && value !== null) return printJson(value) ?? '';
  return String(value);
}

/** Anything to `{name: [strings]}`. */
function normalizeErrors(errors) {
  if (errors === undefined || errors === null) return { error: [FALLBACK] };
  if (typeof errors !== 'object') return { error: [String(errors)] };
  if (Array.isArray(errors)) return { error: errors.map(text) };
  if (errors instanceof Error) return { error: [text(errors)] };
  const normalized = {};
  for (const [name, value] of Object.entries(errors)) {
    const messages = Array.isArray(value) ? value.map(text) : [text(value)];
    Object.defineProperty(normalized, name, {
      value: messages,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return normalized;
}

class BasisTheoryReactorError extends Error {
  constructor(errors, status, detail) {
    super(detail);
    this.name = this.constructor.name;
    this.status = status;
    this.detail = detail;
    this.errors = normalizeErrors(errors);
    this.data = { detail, errors: this.errors };
  }
}

/** name → [status, detail] (facts 2.4). */
const CLASSES = {
  __proto__: null,
  BadRequestError: [400, 'Bad Request'],
  InvalidReactorConfigurationError: [400, 'Invalid Reactor Configuration'],
  AuthenticationError: [401, 'Authentication Failed'],
  AuthorizationError: [403, 'Forbidden'],
  InvalidPaymentMethodError: [402, 'Invalid Payment Method'],
  InvalidReactorFormulaError: [422, 'Invalid Reactor Formula'],
  RateLimitError: [429, 'Rate Limit Exceeded'],
  ReactorRuntimeError: [500, 'Reactor Runtime Error'],
  ServiceUnavailableError: [503, 'Service Unavailable'],
};

const STATUS_MIN = 100;
const STATUS_MAX = 599;

class CustomHttpResponseError extends Error {
  constructor({ status, headers, body } = {}) {
    super('Custom HTTP Response');
    if (!Number.isInteger(status) || status < STATUS_MIN || status > STATUS_MAX) {
      throw new RangeError('The status of a CustomHttpResponseError is an integer of 100 to 599.');
    }
    this.name = 'CustomHttpResponseError';
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}

exports.BasisTheoryReactorError = BasisTheoryReactorError;
exports.CustomHttpResponseError = CustomHttpResponseError;
for (const [name, [status, detail]] of Object.entries(CLASSES)) {
  const named = {
    [name]: class extends BasisTheoryReactorError {
      constructor(errors) {
        super(errors, status, detail);
        this.name = name;
      }
    },
  };
  exports[name] = named[name];
}

internal.CLASSES = CLASSES;
internal.normalizeErrors = normalizeErrors;
