/**
 * What `crypto` of a script asks of the host: OpenSSL, which a bare isolate has not. The script's own keys
 * and data in, bytes out; the host has no keys of ours. One call is one operation, nothing is kept, and
 * every cost is bounded here because V8's time limit does not reach this code.
 */
import { cipher, cipherInfo, cipherNames } from './answer-crypto-ciphers.ts';
import * as digests from './answer-crypto-digests.ts';
import {
  type Answer,
  Question,
  writeAnswer,
  writeFailure,
  wrongArgument,
} from './answer-crypto-frames.ts';
import { exportKey, generateKeys, importKey } from './answer-crypto-keys.ts';
import * as signs from './answer-crypto-signs.ts';

const OPERATIONS: Readonly<Record<string, (question: Question) => Answer>> = {
  hash: digests.hash,
  hmac: digests.hmac,
  pbkdf2: digests.pbkdf2,
  scrypt: digests.scrypt,
  hkdf: digests.hkdf,
  random: digests.random,
  random_integer: digests.randomInteger,
  random_uuid: digests.randomUuid,
  names: digests.names,
  cipher,
  cipher_names: cipherNames,
  cipher_info: cipherInfo,
  import_key: importKey,
  export_key: exportKey,
  generate_keys: generateKeys,
  sign: signs.sign,
  verify: signs.verify,
  encrypt_rsa: signs.encryptRsa,
  diffie_hellman: signs.diffieHellman,
  ecdh_generate: signs.ecdhGenerate,
  ecdh_derive: signs.ecdhDerive,
  ecdh_convert: signs.ecdhConvert,
};

/** `text`: see answer-crypto-frames.ts. Always a text, whatever comes; `!` begins one that tells an error. */
export function answerCrypto(operation: unknown, text: unknown): string {
  try {
    const known = typeof operation === 'string' && Object.hasOwn(OPERATIONS, operation);
    const carryOut = (known ? OPERATIONS[operation] : undefined) ?? wrongArgument();
    return writeAnswer(carryOut(Question.parse(text)));
  } catch (error) {
    return writeFailure(error);
  }
}
