/**
 * The npm modules that scripts may `require`, by the names they use. Versions are those of
 * package.json, exact; docs/modules.md says why each is of its major, and what is not offered.
 */
import { join } from 'node:path';

export interface OfferedModule {
  /** What a script writes in `require`. */
  readonly name: string;
  /** What it gets: a specifier resolved from the root of the repository, or a file of ours. */
  readonly from: string;
  /** Only this member of another offered module, `from`. */
  readonly member?: string;
}

const adapted = (file: string): string => join(import.meta.dirname, 'adapted', file);
/** As it comes, under its own name. */
const asItComes = (name: string): OfferedModule => ({ name, from: name });

/** Plugins get the `dayjs` they extend as an argument, so each stands for itself. */
const DAYJS_PLUGINS = [
  ...['advancedFormat', 'customParseFormat', 'dayOfYear', 'duration', 'isBetween', 'isoWeek'],
  ...['isSameOrAfter', 'isSameOrBefore', 'localizedFormat', 'minMax', 'quarterOfYear'],
  ...['relativeTime', 'timezone', 'toObject', 'utc', 'weekday', 'weekOfYear', 'weekYear'],
];

/**
 * Files of crypto-js that code requires by themselves → members of the whole, so that they fit
 * together.
 */
const CRYPTO_JS_FILES = {
  ...{ aes: 'AES', tripledes: 'TripleDES', md5: 'MD5', pbkdf2: 'PBKDF2', ripemd160: 'RIPEMD160' },
  ...{ sha1: 'SHA1', sha224: 'SHA224', sha256: 'SHA256', sha3: 'SHA3', sha384: 'SHA384' },
  ...{ sha512: 'SHA512', 'hmac-md5': 'HmacMD5', 'hmac-sha1': 'HmacSHA1' },
  ...{ 'hmac-sha256': 'HmacSHA256', 'hmac-sha384': 'HmacSHA384', 'hmac-sha512': 'HmacSHA512' },
  ...{ 'enc-hex': 'enc.Hex', 'enc-utf8': 'enc.Utf8', 'enc-latin1': 'enc.Latin1' },
  ...{ 'enc-base64': 'enc.Base64', 'enc-base64url': 'enc.Base64url', 'mode-ecb': 'mode.ECB' },
  ...{ 'mode-ctr': 'mode.CTR', 'pad-nopadding': 'pad.NoPadding', 'pad-pkcs7': 'pad.Pkcs7' },
  ...{ 'pad-zeropadding': 'pad.ZeroPadding', 'lib-typedarrays': 'lib.WordArray' },
};

export const OFFERED_MODULES: readonly OfferedModule[] = [
  // Parts of Node that are better taken from their keepers than written again.
  { name: 'stream', from: './node_modules/readable-stream/lib/stream.js' },
  { name: 'stream/promises', from: adapted('stream-promises.cjs') },
  { name: 'string_decoder', from: './node_modules/string_decoder/lib/string_decoder.js' },
  { name: 'axios', from: adapted('axios.cjs') },
  { name: 'braintree', from: adapted('braintree.cjs') },
  { name: 'stripe', from: adapted('stripe.cjs') },
  { name: 'jsonpath', from: adapted('jsonpath.cjs') },
  { name: 'openpgp', from: './node_modules/openpgp/dist/node/openpgp.js' },
  ...[
    ...['@adyen/api-library', 'crypto-js', 'csv-parse', 'csv-parse/sync', 'dayjs'],
    ...['fast-xml-parser', 'jose', 'json-stable-stringify', 'jsonwebtoken', 'lodash', 'luxon'],
    ...['node-forge', 'p-limit', 'pdf-lib', 'snakecase-keys', 'uuid', 'xmlbuilder2', 'yup'],
  ].map(asItComes),
  ...Object.entries(CRYPTO_JS_FILES).map(([file, member]) => ({
    ...{ name: `crypto-js/${file}`, from: 'crypto-js', member },
  })),
  ...DAYJS_PLUGINS.map((plugin) => asItComes(`dayjs/plugin/${plugin}`)),
];
