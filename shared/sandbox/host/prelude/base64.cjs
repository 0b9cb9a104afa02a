/** Base64 and base64url (RFC 4648 sections 4 and 5). Decoding takes both alphabets, as Node does. */
const STANDARD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const URL_SAFE = `${STANDARD.slice(0, 62)}-_`;
const codesOf = (alphabet) => Uint8Array.from(alphabet, (character) => character.charCodeAt(0));
const STANDARD_CODES = codesOf(STANDARD);
const URL_SAFE_CODES = codesOf(URL_SAFE);
const VALUES = new Int8Array(128).fill(-1);
for (let value = 0; value < 64; value += 1) {
  VALUES[STANDARD.charCodeAt(value)] = value;
  VALUES[URL_SAFE.charCodeAt(value)] = value;
}
const WHITESPACE = /[\t\n\f\r ]/g;
const STRICT = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/** Characters outside the alphabet are skipped; `strict` throws on them (WHATWG `atob`). */
exports.fromBase64 = (text, strict = false) => {
  if (strict && !STRICT.test(text.replace(WHITESPACE, ''))) {
    throw new RangeError('The string to be decoded is not correctly encoded.');
  }
  const bytes = new Uint8Array((text.length * 3) >> 2);
  let bits = 0;
  let gathered = 0;
  let at = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit === 0x3d) break;
    const value = unit < 128 ? VALUES[unit] : -1;
    if (value < 0) continue;
    bits = (bits << 6) | value;
    gathered += 6;
    if (gathered >= 8) {
      gathered -= 8;
      bytes[at++] = (bits >> gathered) & 0xff;
    }
  }
  return bytes.subarray(0, at);
};

/** Bytes of input per piece of text: appending single characters made ropes that ended runs by memory. */
const PIECE = 6144;
const PADDING = 0x3d;

function encodePiece(bytes, start, end, codes) {
  const units = new Uint8Array(Math.ceil((end - start) / 3) * 4).fill(PADDING);
  let to = 0;
  for (let at = start; at < end; at += 3) {
    const group = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    units[to] = codes[group >> 18];
    units[to + 1] = codes[(group >> 12) & 63];
    if (at + 1 < end) units[to + 2] = codes[(group >> 6) & 63];
    if (at + 2 < end) units[to + 3] = codes[group & 63];
    to += 4;
  }
  return String.fromCharCode(...units);
}

exports.toBase64 = (bytes, urlSafe) => {
  const codes = urlSafe ? URL_SAFE_CODES : STANDARD_CODES;
  let text = '';
  for (let at = 0; at < bytes.length; at += PIECE) {
    text += encodePiece(bytes, at, Math.min(at + PIECE, bytes.length), codes);
  }
  return urlSafe ? text.replace(/=+$/, '') : text;
};
