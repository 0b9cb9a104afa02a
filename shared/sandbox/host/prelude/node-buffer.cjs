/** Node's `Buffer` over Uint8Array: the encodings, comparison, searching and number access. */
const utf8 = require('utf8');
const { fromBase64, toBase64 } = require('base64');

const CHUNK = 4096;
const HEX = /^[0-9a-fA-F]{2}$/;

function fromUnits(units) {
  let text = '';
  for (let at = 0; at < units.length; at += CHUNK) {
    text += String.fromCharCode(...units.subarray(at, at + CHUNK));
  }
  return text;
}

const latin1 = (bytes) => fromUnits(bytes);

function utf16(bytes) {
  const units = new Uint16Array(bytes.length >> 1);
  for (let at = 0; at < units.length; at += 1) units[at] = bytes[2 * at] | (bytes[2 * at + 1] << 8);
  return fromUnits(units);
}

function fromHex(text) {
  const bytes = [];
  for (let at = 0; at + 1 < text.length; at += 2) {
    const pair = text.slice(at, at + 2);
    if (!HEX.test(pair)) break;
    bytes.push(Number.parseInt(pair, 16));
  }
  return Uint8Array.from(bytes);
}

function toHex(bytes) {
  let text = '';
  for (const byte of bytes) text += (byte < 16 ? '0' : '') + byte.toString(16);
  return text;
}

function fromLatin1(text) {
  return Uint8Array.from({ length: text.length }, (_item, at) => text.charCodeAt(at));
}

function fromUtf16(text) {
  const bytes = new Uint8Array(text.length * 2);
  for (let at = 0; at < text.length; at += 1) {
    bytes[2 * at] = text.charCodeAt(at);
    bytes[2 * at + 1] = text.charCodeAt(at) >> 8;
  }
  return bytes;
}

const CODECS = {
  __proto__: null,
  utf8: [utf8.encode, utf8.decode],
  hex: [fromHex, toHex],
  base64: [fromBase64, (bytes) => toBase64(bytes, false)],
  base64url: [fromBase64, (bytes) => toBase64(bytes, true)],
  latin1: [fromLatin1, latin1],
  ascii: [fromLatin1, (bytes) => latin1(bytes.map((byte) => byte & 0x7f))],
  utf16le: [fromUtf16, utf16],
};
const NAMES = {
  __proto__: null,
  'utf-8': 'utf8',
  binary: 'latin1',
  ucs2: 'utf16le',
  'ucs-2': 'utf16le',
  'utf-16le': 'utf16le',
};

function codec(encoding = 'utf8') {
  const name = String(encoding).toLowerCase();
  const found = CODECS[NAMES[name] ?? name];
  if (found === undefined) {
    const error = new TypeError('Unknown encoding');
    error.code = 'ERR_UNKNOWN_ENCODING';
    throw error;
  }
  return found;
}

function view(bytes) {
  return Object.setPrototypeOf(
    new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    Buffer.prototype,
  );
}

class Buffer extends Uint8Array {
  static from(value, encodingOrOffset, length) {
    if (typeof value === 'string') return view(codec(encodingOrOffset)[0](value));
    if (value instanceof ArrayBuffer) return view(new Uint8Array(value, encodingOrOffset, length));
    if (value?.type === 'Buffer' && Array.isArray(value.data)) return Buffer.from(value.data);
    if (typeof value === 'object' && value !== null) {
      const primitive = value.valueOf();
      if (primitive !== value && primitive !== null)
        return Buffer.from(primitive, encodingOrOffset);
      return view(Uint8Array.from(value));
    }
    throw new TypeError(
      'The first argument must be a string, a Buffer, an ArrayBuffer or an Array.',
    );
  }

  static alloc(size, fill, encoding) {
    const buffer = view(new Uint8Array(size));
    return fill === undefined ? buffer : buffer.fill(fill, 0, size, encoding);
  }

  static allocUnsafe(size) {
    return Buffer.alloc(size);
  }

  static concat(list, total) {
    const length = total ?? list.reduce((sum, item) => sum + item.length, 0);
    const joined = Buffer.alloc(length);
    let at = 0;
    for (const item of list) {
      const part = item.subarray(0, Math.max(0, length - at));
      joined.set(part, at);
      at += part.length;
    }
    return joined;
  }

  static isBuffer(value) {
    return value instanceof Buffer;
  }

  static isEncoding(name) {
    const lower = String(name).toLowerCase();
    return CODECS[NAMES[lower] ?? lower] !== undefined;
  }

  static byteLength(value, encoding) {
    if (typeof value !== 'string') return value.byteLength;
    return encoding === undefined ? utf8.byteLength(value) : codec(encoding)[0](value).length;
  }

  static compare(left, right) {
    const length = Math.min(left.length, right.length);
    for (let at = 0; at < length; at += 1) {
      if (left[at] !== right[at]) return left[at] < right[at] ? -1 : 1;
    }
    return Math.sign(left.length - right.length);
  }

  toString(encoding, start = 0, end = this.length) {
    return codec(encoding)[1](plain(this).subarray(Math.max(0, start), Math.max(0, end)));
  }

  toJSON() {
    return { type: 'Buffer', data: Array.from(this) };
  }

  equals(other) {
    return Buffer.compare(this, other) === 0;
  }

  compare(other) {
    return Buffer.compare(this, other);
  }

  slice(start, end) {
    return view(plain(this).subarray(start, end));
  }

  subarray(start, end) {
    return view(plain(this).subarray(start, end));
  }

  write(text, offset = 0, length = undefined, encoding = undefined) {
    if (typeof offset === 'string') return this.write(text, 0, undefined, offset);
    if (typeof length === 'string') return this.write(text, offset, undefined, length);
    const room = Math.min(length ?? this.length, this.length - offset);
    const bytes = codec(encoding)[0](text).subarray(0, Math.max(0, room));
    this.set(bytes, offset);
    return bytes.length;
  }

  copy(target, targetStart = 0, start = 0, end = this.length) {
    const part = this.subarray(start, Math.min(end, start + target.length - targetStart));
    target.set(part, targetStart);
    return part.length;
  }

  fill(value, start = 0, end = this.length, encoding = undefined) {
    if (typeof start === 'string') return this.fill(value, 0, this.length, start);
    if (typeof value === 'number') return super.fill(value, start, end);
    const bytes = typeof value === 'string' ? codec(encoding)[0](value) : value;
    if (bytes.length === 0) return super.fill(0, start, end);
    for (let at = start; at < end; at += 1) this[at] = bytes[(at - start) % bytes.length];
    return this;
  }

  indexOf(value, from = 0, encoding = undefined) {
    if (typeof value === 'number') return super.indexOf(value & 0xff, from);
    const bytes = typeof value === 'string' ? codec(encoding)[0](value) : value;
    for (let at = from; at + bytes.length <= this.length; at += 1) {
      if (bytes.every((byte, offset) => this[at + offset] === byte)) return at;
    }
    return -1;
  }

  includes(value, from, encoding) {
    return this.indexOf(value, from, encoding) !== -1;
  }
}

const plain = (buffer) => new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);

/** Node's name → DataView's, with its width; each in both byte orders and both spellings. */
const NUMBERS = [
  ...[
    ['Int8', 1],
    ['UInt8', 1, 'Uint8'],
    ['Int16', 2],
    ['UInt16', 2, 'Uint16'],
    ['Int32', 4],
  ],
  ...[
    ['UInt32', 4, 'Uint32'],
    ['Float', 4, 'Float32'],
    ['Double', 8, 'Float64'],
  ],
  ...[
    ['BigInt64', 8],
    ['BigUInt64', 8, 'BigUint64'],
  ],
];

function defineNumber(name, width, accessor) {
  for (const order of width === 1 ? [''] : ['BE', 'LE']) {
    const little = order === 'LE';
    const define = (verb, method) => {
      for (const spelled of new Set([name, name.replace('UInt', 'Uint')])) {
        Object.defineProperty(Buffer.prototype, `${verb}${spelled}${order}`, {
          value: method,
          writable: true,
          configurable: true,
        });
      }
    };
    const of = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    define('read', function (offset = 0) {
      return of(this)[`get${accessor}`](offset, little);
    });
    define('write', function (value, offset = 0) {
      of(this)[`set${accessor}`](offset, value, little);
      return offset + width;
    });
  }
}
for (const [name, width, accessor = name] of NUMBERS) defineNumber(name, width, accessor);

exports.Buffer = Buffer;
exports.latin1 = latin1;
exports.utf16 = utf16;
exports.atob = (text) => latin1(fromBase64(String(text), true));
exports.btoa = (text) => {
  const units = String(text);
  for (let at = 0; at < units.length; at += 1) {
    if (units.charCodeAt(at) > 0xff) throw new RangeError('Invalid character');
  }
  return toBase64(fromLatin1(units), false);
};
