/**
 * The one place inside where a request leaves and a response comes back, in the form of the gateway: JSON
 * of the head, a line break, the body.
 */
const { call } = require('calls');
const { toBase64 } = require('base64');
const { gather } = require('fetch-body');

const { parse, stringify } = JSON;
/** As the gateway has it, which is the authority; here it saves printing what will be refused. */
const BODY_BYTES_MAX = 5 * 1024 * 1024;

/** A multiple of 3, so that the pieces of base64 can be joined. */
const PIECE_BYTES = 3 * 4096;

/** Piece by piece: a long text made of single characters takes 30 times its length until it is read. */
function base64Of(bytes) {
  const pieces = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const piece = toBase64(bytes.subarray(at, at + PIECE_BYTES), false);
    // Reading it makes V8 put it together.
    piece.charCodeAt(0);
    pieces.push(piece);
  }
  return pieces.join('');
}

/** `[coding, text]` of a body. */
async function encodeBody(content) {
  if (content === undefined) return [undefined, ''];
  if (content.text !== undefined) return ['text', content.text];
  const bytes = content.source === undefined ? content.bytes : await gather(content.source);
  if (bytes.length > BODY_BYTES_MAX) {
    const error = new Error('The body of the request is larger than 5 MiB');
    error.code = 'ERR_REQUEST_TOO_LARGE';
    throw error;
  }
  return ['base64', base64Of(bytes)];
}

/**
 * Sends `{url, method, headers, redirect, decode}` with a body as of `extract`. Settles with
 * `{url, redirected, status, status_text, headers, text or base64}`, or rejects with an Error that has
 * a `code`. `onCall` is handed a function that gives the request up.
 */
module.exports = async function exchange(request, content, onCall) {
  const [body, text] = await encodeBody(content);
  const { answer, cancel } = call('fetch', `${stringify({ ...request, body })}\n${text}`);
  onCall(cancel);
  return parse(await answer);
};
