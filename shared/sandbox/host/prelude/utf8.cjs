/** UTF-8 both ways (Unicode 15, table 3-7). Ill-formed input becomes U+FFFD, never an exception. */
const CHUNK = 4096;
/** Shorter ones are not worth a call of their own. */
const ASCII_RUN_MIN = 32;

function byteLength(text) {
  let bytes = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    // A pair takes 4 bytes for its two units: 2 + 2 so far counted as 3 + 1.
    if (isPair(text, index, unit)) index += 1;
  }
  return bytes;
}

function isPair(text, index, unit) {
  return unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00;
}

/** Writes `text` to `bytes` from 0; the caller has sized it by `byteLength`. */
function encodeInto(text, bytes) {
  let at = 0;
  for (let index = 0; index < text.length; index += 1) {
    let point = text.charCodeAt(index);
    if (point < 0x80) {
      bytes[at++] = point;
      continue;
    }
    if (isPair(text, index, point)) {
      index += 1;
      point = 0x10000 + ((point & 0x3ff) << 10) + (text.charCodeAt(index) & 0x3ff);
    } else if ((point & 0xf800) === 0xd800) point = 0xfffd;
    if (point < 0x800) bytes[at++] = 0xc0 | (point >> 6);
    else {
      if (point < 0x10000) bytes[at++] = 0xe0 | (point >> 12);
      else {
        bytes[at++] = 0xf0 | (point >> 18);
        bytes[at++] = 0x80 | ((point >> 12) & 0x3f);
      }
      bytes[at++] = 0x80 | ((point >> 6) & 0x3f);
    }
    bytes[at++] = 0x80 | (point & 0x3f);
  }
}

function encode(text) {
  const bytes = new Uint8Array(byteLength(text));
  encodeInto(text, bytes);
  return bytes;
}

/** How many continuation bytes follow, and the allowed range of the first of them. */
function sequence(lead) {
  if (lead >= 0xc2 && lead <= 0xdf) return [1, 0x80, 0xbf];
  if (lead === 0xe0) return [2, 0xa0, 0xbf];
  if (lead === 0xed) return [2, 0x80, 0x9f];
  if (lead >= 0xe1 && lead <= 0xef) return [2, 0x80, 0xbf];
  if (lead === 0xf0) return [3, 0x90, 0xbf];
  if (lead >= 0xf1 && lead <= 0xf3) return [3, 0x80, 0xbf];
  if (lead === 0xf4) return [3, 0x80, 0x8f];
  return [-1, 0, 0];
}

/** `[code point, index after it]`; U+FFFD for each maximal ill-formed part. */
function readPoint(bytes, index) {
  const lead = bytes[index];
  const [more, low, high] = sequence(lead);
  if (more < 0) return [0xfffd, index + 1];
  let point = lead & (0x3f >> more);
  for (let offset = 1; offset <= more; offset += 1) {
    const byte = bytes[index + offset];
    const fits = offset === 1 ? byte >= low && byte <= high : byte >= 0x80 && byte <= 0xbf;
    if (!fits) return [0xfffd, index + offset];
    point = (point << 6) | (byte & 0x3f);
  }
  return [point, index + more + 1];
}

/** End of the ASCII that begins at `index`, at most a piece away. */
function asciiEnd(bytes, index) {
  const most = Math.min(bytes.length, index + CHUNK);
  let end = index;
  while (end < most && bytes[end] < 0x80) end += 1;
  return end;
}

/** `fatal`: throws a TypeError on ill-formed input. */
function decode(bytes, fatal = false) {
  let text = '';
  let points = [];
  let index = 0;
  const flush = () => {
    text += String.fromCodePoint(...points);
    points = [];
  };
  while (index < bytes.length) {
    const end = asciiEnd(bytes, index);
    if (end - index >= ASCII_RUN_MIN) {
      if (points.length > 0) flush();
      text += String.fromCharCode(...bytes.subarray(index, end));
      index = end;
      continue;
    }
    const [point, next] = bytes[index] < 0x80 ? [bytes[index], index + 1] : readPoint(bytes, index);
    if (fatal && point === 0xfffd && bytes[index] !== 0xef) {
      throw new TypeError('The encoded data was not valid for encoding utf-8');
    }
    points.push(point);
    index = next;
    if (points.length === CHUNK) flush();
  }
  flush();
  return text;
}

exports.byteLength = byteLength;
exports.encode = encode;
exports.decode = decode;
