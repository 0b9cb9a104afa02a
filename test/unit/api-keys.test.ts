import { createSecretKey, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  encodeBase58,
  generateApiKey,
  generateProxyKey,
  hashApiKey,
  hashProxyKey,
  isWellFormedApiKey,
  isWellFormedProxyKey,
} from '../../shared/api-keys.ts';

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** The textbook way, digit by digit. */
function referenceBase58(bytes: Buffer): string {
  let value = BigInt(`0x${bytes.toString('hex') || '0'}`);
  let text = '';
  for (; value > 0n; value /= 58n) text = ALPHABET.charAt(Number(value % 58n)) + text;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return '1'.repeat(zeros === -1 ? bytes.length : zeros) + text;
}

describe('API keys', () => {
  it('encodes base58 like the textbook, leading zeros included', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(4), (array, zeros) => {
        const bytes = Buffer.concat([Buffer.alloc(zeros), Buffer.from(array)]);
        expect(encodeBase58(bytes)).to.equal(referenceBase58(bytes));
      }),
    );
  });

  it('encodes the known vectors of base58', () => {
    expect(encodeBase58(Buffer.from('Hello World!'))).to.equal('2NEpo7TZRRrLZSi2U');
    expect(encodeBase58(Buffer.from('0000287fb4cd', 'hex'))).to.equal('11233QC4');
  });

  it('generates keys that are well-formed and different', () => {
    const keys = Array.from({ length: 200 }, generateApiKey);
    expect(new Set(keys).size).to.equal(200);
    for (const key of keys) expect(isWellFormedApiKey(key)).to.equal(true);
  });

  it('refuses every key with one character changed, added or removed', () => {
    const key = generateApiKey();
    for (let index = 0; index < key.length; index += 1) {
      const other = key[index] === 'z' ? 'y' : 'z';
      const changed = key.slice(0, index) + other + key.slice(index + 1);
      expect(isWellFormedApiKey(changed), `changed at ${index}`).to.equal(false);
      const shorter = key.slice(0, index) + key.slice(index + 1);
      expect(isWellFormedApiKey(shorter), `removed at ${index}`).to.equal(false);
    }
    expect(isWellFormedApiKey(`${key}1`)).to.equal(false);
    expect(isWellFormedApiKey(key.replace('key_', 'key_1'))).to.equal(false);
  });

  it('refuses what is no key at all, in any length', () => {
    for (const text of ['', 'key_', 'key_0OIl', `key_${'z'.repeat(100_000)}`, 'key_\u0000', '🔑']) {
      expect(isWellFormedApiKey(text)).to.equal(false);
    }
  });

  it('hashes under the pepper: another pepper, another hash', () => {
    const key = generateApiKey();
    const [one, two] = [createSecretKey(randomBytes(32)), createSecretKey(randomBytes(32))];
    expect(hashApiKey(key, one)).to.have.length(32);
    expect(hashApiKey(key, one).equals(hashApiKey(key, one))).to.equal(true);
    expect(hashApiKey(key, one).equals(hashApiKey(key, two))).to.equal(false);
  });
});

describe('proxy keys', () => {
  const pepper = createSecretKey(randomBytes(32));

  it('are 22 base58 digits, all of them different', () => {
    // Enough for keys whose digits would be fewer without padding: one in 43.
    const keys = Array.from({ length: 2_000 }, generateProxyKey);
    expect(new Set(keys).size).to.equal(2_000);
    for (const key of keys) expect(isWellFormedProxyKey(key)).to.equal(true);
  });

  it('are told from what cannot be one', () => {
    const key = generateProxyKey();
    for (const other of ['', key.slice(1), `${key}1`, `${key}\n`, `0${key.slice(1)}`, `Ä${key}`]) {
      expect(isWellFormedProxyKey(other)).to.equal(false);
    }
  });

  it('have a hash under the pepper, which is not that of an API key of the same text', () => {
    const key = generateProxyKey();
    expect(hashProxyKey(key, pepper))
      .to.have.lengthOf(32)
      .and.deep.equal(hashProxyKey(key, pepper));
    expect(hashProxyKey(key, pepper)).not.to.deep.equal(hashApiKey(key, pepper));
    expect(hashProxyKey(key, createSecretKey(randomBytes(32)))).not.to.deep.equal(
      hashProxyKey(key, pepper),
    );
    expect(hashProxyKey(generateProxyKey(), pepper)).not.to.deep.equal(hashProxyKey(key, pepper));
  });
});
