/** Algorithms of the Web Cryptography API: their names, what keys of them may do, how they read. */
const { DOMException } = require('dom-exception');
const { fail, isHostError, piece, viewOf } = require('node-crypto-bridge');

const DIGESTS = {
  __proto__: null,
  ...{ 'SHA-1': 'sha1', 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' },
  ...{ 'SHA3-256': 'sha3-256', 'SHA3-384': 'sha3-384', 'SHA3-512': 'sha3-512' },
};
const SECRETS = {
  __proto__: null,
  HMAC: ['sign', 'verify'],
  'AES-GCM': ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'],
  'AES-CBC': ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'],
  'AES-CTR': ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'],
  'AES-KW': ['wrapKey', 'unwrapKey'],
  PBKDF2: ['deriveBits', 'deriveKey'],
  HKDF: ['deriveBits', 'deriveKey'],
};
/** What the public and what the private half may do. */
const PAIRS = {
  __proto__: null,
  'RSASSA-PKCS1-v1_5': [['verify'], ['sign']],
  'RSA-PSS': [['verify'], ['sign']],
  'RSA-OAEP': [
    ['encrypt', 'wrapKey'],
    ['decrypt', 'unwrapKey'],
  ],
  ECDSA: [['verify'], ['sign']],
  ECDH: [[], ['deriveBits', 'deriveKey']],
  Ed25519: [['verify'], ['sign']],
  Ed448: [['verify'], ['sign']],
  X25519: [[], ['deriveBits', 'deriveKey']],
  X448: [[], ['deriveBits', 'deriveKey']],
};
const CURVES = {
  __proto__: null,
  ...{ 'P-256': 'prime256v1', 'P-384': 'secp384r1', 'P-521': 'secp521r1' },
};
const ALL = new Map();
for (const names of [DIGESTS, SECRETS, PAIRS]) {
  for (const name of Object.keys(names)) ALL.set(name.toLowerCase(), name);
}

function refuse(name, message) {
  throw new DOMException(message, name);
}

/** What fails in the host becomes an OperationError that tells nothing, as the API wants it. */
function operate(work) {
  try {
    return work();
  } catch (error) {
    if (!isHostError(error)) throw error;
    return refuse('OperationError', 'The operation failed for an operation-specific reason');
  }
}

/** `{...algorithm, name}` with the name as the API spells it; `hash` as `{ name }`. */
function algorithmOf(given) {
  const { name, hash, ...rest } = typeof given === 'string' ? { name: given } : (given ?? {});
  const known = typeof name === 'string' ? ALL.get(name.toLowerCase()) : undefined;
  if (known === undefined) refuse('NotSupportedError', 'Unrecognized algorithm name');
  return hash === undefined
    ? { ...rest, name: known }
    : { ...rest, name: known, hash: hashOf(hash) };
}

function hashOf(given) {
  const name = ALL.get(`${typeof given === 'string' ? given : given?.name}`.toLowerCase());
  if (name === undefined || DIGESTS[name] === undefined) {
    refuse('NotSupportedError', 'Unrecognized algorithm name');
  }
  return { name };
}

/** The host's name of a digest. */
function digestName(hash) {
  return DIGESTS[hash?.name] ?? fail('ERR_MISSING_OPTION', 'The algorithm needs a hash.');
}

/** Bytes only: the API takes no text. */
function bufferPiece(value, name) {
  if (viewOf(value) === undefined) {
    fail('ERR_INVALID_ARG_TYPE', `${name} must be a BufferSource.`);
  }
  return piece(value, undefined, name);
}

const USAGES = [
  ...['encrypt', 'decrypt', 'sign', 'verify'],
  ...['deriveKey', 'deriveBits', 'wrapKey', 'unwrapKey'],
];

/** The usages that a key of this kind may have, in the API's order; throws on others. */
function usagesOf(name, type, given) {
  const list = [...given];
  const allowed = SECRETS[name] ?? PAIRS[name][type === 'private' ? 1 : 0];
  if (list.some((usage) => !USAGES.includes(usage))) fail(undefined, 'Unknown key usage.');
  if (list.some((usage) => !allowed.includes(usage))) {
    refuse('SyntaxError', `Unsupported key usage for a ${name} key`);
  }
  if (list.length === 0 && type !== 'public') {
    refuse('SyntaxError', 'Usages cannot be empty when importing a secret or private key.');
  }
  return USAGES.filter((usage) => list.includes(usage));
}

Object.assign(exports, {
  ...{ CURVES, DIGESTS, PAIRS, SECRETS, algorithmOf, bufferPiece, digestName, operate },
  ...{ refuse, usagesOf },
});
