/** Keyed digests of a value. They yield bytes, which must be encoded before they can be a result. */
import { createHmac } from 'node:crypto';
import { ExpressionError } from '../expression-error.ts';
import { isBytes } from '../values.ts';
import { type Filter, filter, inputText, plain, text } from './filter.ts';

const ALGORITHMS: ReadonlyMap<string, string> = new Map([
  ['sha-1', 'sha1'],
  ['sha-256', 'sha256'],
  ['sha-512', 'sha512'],
]);

/** RFC 2104 over the UTF-8 of a text. An empty key would be a plain hash, so it is refused. */
const hmac = filter(
  [text, text],
  (name, key) => {
    const algorithm = ALGORITHMS.get(name);
    if (algorithm === undefined) throw new ExpressionError('Unknown hash algorithm');
    if (key === '') throw new ExpressionError('The key must not be empty');
    return (input, meter) => {
      if (input === null) return null;
      return createHmac(algorithm, key).update(inputText(input, meter), 'utf8').digest();
    };
  },
  { place: 'not_last' },
);

function encode(apply: (bytes: Buffer) => string): Filter {
  return plain((input, meter) => {
    if (!isBytes(input)) throw new ExpressionError('Bytes are needed, such as those of hmac');
    meter.reserve(input.length * 2);
    return apply(Buffer.from(input));
  });
}

export const CRYPTO_FILTERS: Readonly<Record<string, Filter>> = {
  hmac,
  to_base64: encode((bytes) => bytes.toString('base64')),
  to_base16: encode((bytes) => bytes.toString('hex').toUpperCase()),
};
