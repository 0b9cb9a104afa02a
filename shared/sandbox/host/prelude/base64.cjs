/** Base64 and base64url (RFC 4648 sections 4 and 5). Decoding takes both alphabets, as Node does. */
const STANDARD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const URL_SAFE = `${STANDARD.slice(0, 62)}-_`;
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

exports.toBase64 = (bytes, urlSafe) => {
  const alphabet = urlSafe ? URL_SAFE : STANDARD;
  let text = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const group = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    text += alphabet[group >> 18] + alphabet[(group >> 12) & 63];
    if (at + 1 < bytes.length) text += alphabet[(group >> 6) & 63];
    else if (!urlSafe) text += '=';
    if (at + 2 < bytes.length) text += alphabet[group & 63];
    else if (!urlSafe) text += '=';
  }
  return text;
};
