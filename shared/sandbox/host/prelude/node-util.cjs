/** The part of Node's `util` that runs without a process. */
const { inspect, format } = require('inspect');
const { TextEncoder, TextDecoder } = require('text-encoding');

const PROMISIFIED = Symbol.for('nodejs.util.promisify.custom');

function promisify(original) {
  if (typeof original !== 'function') throw new TypeError('The original must be a function.');
  if (typeof original[PROMISIFIED] === 'function') return original[PROMISIFIED];
  return function (...args) {
    return new Promise((resolve, reject) => {
      original.call(this, ...args, (error, value) => (error ? reject(error) : resolve(value)));
    });
  };
}
promisify.custom = PROMISIFIED;

function callbackify(original) {
  return function (...args) {
    const callback = args.pop();
    original.apply(this, args).then(
      (value) => callback(null, value),
      (error) => callback(error),
    );
  };
}

function inherits(child, parent) {
  Object.defineProperty(child, 'super_', {
    value: parent,
    writable: true,
    configurable: true,
  });
  Object.setPrototypeOf(child.prototype, parent.prototype);
}

function isDeepStrictEqual(left, right) {
  if (Object.is(left, right)) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || !left || !right) return false;
  if (Object.getPrototypeOf(left) !== Object.getPrototypeOf(right)) return false;
  if (left instanceof Date) return left.getTime() === right.getTime();
  const keys = Reflect.ownKeys(left);
  if (keys.length !== Reflect.ownKeys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && isDeepStrictEqual(left[key], right[key]));
}

const isOf = (type) => (value) => value instanceof type;

exports.inspect = inspect;
exports.format = format;
exports.promisify = promisify;
exports.callbackify = callbackify;
exports.inherits = inherits;
exports.isDeepStrictEqual = isDeepStrictEqual;
exports.deprecate = (original) => original;
exports.TextEncoder = TextEncoder;
exports.TextDecoder = TextDecoder;
exports.isArray = Array.isArray;
exports.types = {
  isDate: isOf(Date),
  isRegExp: isOf(RegExp),
  isNativeError: isOf(Error),
  isPromise: isOf(Promise),
  isMap: isOf(Map),
  isSet: isOf(Set),
  isUint8Array: isOf(Uint8Array),
  isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
};
