import { createSecretKey, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  open,
  SealBrokenError,
  seal,
  sealedKeyVersion,
  sealLabel,
} from '../../../shared/crypto/envelope.ts';

const key = createSecretKey(randomBytes(32));
const versioned = { version: 7, key };

describe('sealed values', () => {
  it('open to what was sealed, empty values included', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), fc.string(), (plain, text) => {
        const label = sealLabel('token', text.replaceAll('\0', ''));
        const sealed = seal(versioned, Buffer.from(plain), label);
        expect(open(key, sealed, label).equals(Buffer.from(plain))).to.equal(true);
        expect(sealedKeyVersion(sealed)).to.equal(7);
      }),
    );
  });

  it('do not open when any single byte is changed', () => {
    const label = sealLabel('token', 'a');
    const sealed = seal(versioned, Buffer.from('4242424242424242'), label);
    // Bytes 1 to 4 are the key version: they choose the key, which the caller has given here.
    for (let index = 5; index < sealed.length; index += 1) {
      const forged = Buffer.from(sealed);
      forged.writeUInt8(forged.readUInt8(index) ^ 1, index);
      expect(() => open(key, forged, label), `byte ${index}`).to.throw(SealBrokenError);
    }
  });

  it('do not open under another key, another label, or cut short', () => {
    const label = sealLabel('token', 'tenant', 'id');
    const sealed = seal(versioned, Buffer.from('secret'), label);
    expect(() => open(createSecretKey(randomBytes(32)), sealed, label)).to.throw(SealBrokenError);
    expect(() => open(key, sealed, sealLabel('token', 'tenant', 'di'))).to.throw(SealBrokenError);
    expect(() => open(key, sealed, sealLabel('token', 'tenanti', 'd'))).to.throw(SealBrokenError);
    for (let length = 0; length < sealed.length; length += 1) {
      expect(() => open(key, sealed.subarray(0, length), label)).to.throw(SealBrokenError);
    }
  });

  it('never use a nonce twice, over many blocks of the nonce pool', () => {
    const label = sealLabel('x');
    const nonces = Array.from({ length: 3_000 }, () =>
      seal(versioned, Buffer.alloc(0), label).toString('hex', 5, 17),
    );
    expect(new Set(nonces).size).to.equal(3_000);
  });
});
