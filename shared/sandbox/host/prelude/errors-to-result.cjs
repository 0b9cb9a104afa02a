/**
 * Turns what customer code threw into the text of a result. By name as well as by class, because code
 * may bundle its own copy of the error classes.
 */
require('reactor-errors');
const { CLASSES, normalizeErrors } = internal;

function nameOf(error) {
  const name = typeof error === 'object' && error !== null ? error.name : undefined;
  return typeof name === 'string' ? name : '';
}

/** How the script's own code is named in a stack: `script.js:3:14`. */
const PLACE = /\bscript\.js:(\d+)/;
const STACK_CHARACTERS_MAX = 16_384;

/** Of the script's own code, the line nearest to where it was thrown; `undefined` when none is known. */
function lineOf(error) {
  const stack = typeof error === 'object' && error !== null ? error.stack : undefined;
  if (typeof stack !== 'string') return undefined;
  const found = PLACE.exec(stack.slice(0, STACK_CHARACTERS_MAX));
  return found === null ? undefined : Number(found[1]);
}

/** V8's words for a read of a member of `null`. */
const READ_OF_NULL = /^Cannot read properties of null \(reading '(\w+)'\)$/;
const CLIENT_MEMBERS = /^(?:tokens|reactors|proxy|tokenize|detokenize)$/;

/** The message of an error, with what of the request is null where that is the likely reason. */
function withHint(message) {
  const found = typeof message === 'string' ? READ_OF_NULL.exec(message) : null;
  if (found === null) return undefined;
  const isOfClient = CLIENT_MEMBERS.test(found[1]) && !internal.services.bt;
  if (isOfClient) return `${message}: \`req.bt\` is null without an application`;
  return internal.hasArgs ? undefined : `${message}: \`req.args\` is null`;
}

/** Lists and messages cut to their bounds: an error must not carry a result's worth of data. */
function bounded(errors) {
  const kept = {};
  const entries = Object.entries(errors).slice(0, limits.error_entries_max);
  for (const [name, messages] of entries) {
    const list = messages.slice(0, limits.error_entries_max);
    Object.defineProperty(kept, name.slice(0, limits.message_characters_max), {
      value: list.map((message) => message.slice(0, limits.message_characters_max)),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return kept;
}

function errorsOf(error, known) {
  if (!known) {
    const hinted = nameOf(error) === 'TypeError' ? withHint(error.message) : undefined;
    return normalizeErrors(hinted ?? error);
  }
  const given = error.errors ?? error.data?.errors;
  return normalizeErrors(given ?? error.message);
}

/** Calls `end` with the error's text. May throw: reading an error can run customer code. */
exports.describe = function describe(error, end, stringify) {
  const name = nameOf(error);
  if (name === 'CustomHttpResponseError') {
    const { status, headers, body } = error;
    const head = stringify({ name, status, headers });
    const bodyText = stringify(body);
    // The body is text for the gateway: it may have half a million members.
    const text = bodyText === undefined ? head : `${head}\n${bodyText}`;
    if (text.length > limits.result_bytes_max) end('result_too_large', '');
    else end('error', text);
    return;
  }
  const known = CLASSES[name] !== undefined;
  const errors = bounded(errorsOf(error, known));
  end('error', stringify({ name: known ? name : 'Error', errors, line: lineOf(error) }));
};
