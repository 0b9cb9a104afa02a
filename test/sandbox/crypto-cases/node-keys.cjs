/** Node's `crypto` where it must come to the same inside: keys and what is done with them. */
module.exports = (crypto, keys) => ({
  keys: [
    () => {
      const k = crypto.createPrivateKey(keys.RSA);
      return [
        k.type,
        k.asymmetricKeyType,
        k.asymmetricKeyDetails,
        k.symmetricKeySize,
        String(k),
        k.export({ format: 'jwk' }),
        k.export({ format: 'der', type: 'pkcs1' }),
        k.export({ format: 'pem', type: 'pkcs8' }),
        k.equals(crypto.createPrivateKey(keys.RSA1)),
      ];
    },
    () => {
      const k = crypto.createPublicKey(keys.RSA);
      return [
        k.type,
        k.export({ format: 'pem', type: 'spki' }),
        k.export({ format: 'pem', type: 'pkcs1' }),
        k.equals(crypto.createPublicKey(keys.RSAPUB)),
      ];
    },
    () => {
      const k = crypto.createPublicKey(crypto.createPrivateKey(keys.EC));
      return [
        k.type,
        k.asymmetricKeyDetails,
        k.export({ format: 'jwk' }),
        k.export({ format: 'der', type: 'spki' }),
      ];
    },
    () => {
      const k = crypto.createPrivateKey(keys.EC);
      return k.export({ format: 'pem', type: 'sec1' });
    },
    () => {
      const k = crypto.createPrivateKey({
        key: crypto.createPrivateKey(keys.EC).export({ format: 'der', type: 'sec1' }),
        format: 'der',
        type: 'sec1',
      });
      return k.export({ format: 'jwk' });
    },
    () => {
      const k = crypto.createSecretKey(Buffer.from('abc'));
      return [
        k.type,
        k.symmetricKeySize,
        k.export(),
        k.export({ format: 'jwk' }),
        k.equals(crypto.createSecretKey('abc', 'utf8')),
      ];
    },
    () => crypto.createSecretKey(Buffer.alloc(0)).symmetricKeySize,
    () =>
      crypto.diffieHellman({
        privateKey: crypto.createPrivateKey(keys.X),
        publicKey: crypto.createPublicKey(keys.YPUB),
      }),
    () => {
      const e = crypto.createECDH('prime256v1');
      e.setPrivateKey('01'.repeat(32), 'hex');
      return [
        e.getPublicKey('hex'),
        e.getPublicKey('hex', 'compressed'),
        e.getPrivateKey('hex'),
        crypto.ECDH.convertKey(e.getPublicKey(), 'prime256v1', undefined, 'hex', 'compressed'),
      ];
    },
    () => {
      const k = crypto.generateKeyPairSync('ec', { namedCurve: 'secp256k1' });
      return [k.privateKey.asymmetricKeyDetails, k.publicKey.type];
    },
    () => crypto.generateKeySync('aes', { length: 256 }).symmetricKeySize,
    () => crypto.generateKeySync('hmac', { length: 100 }).symmetricKeySize,
    () =>
      new Promise((d, f) =>
        crypto.generateKeyPair('ed25519', (e, a, b) => (e ? f(e) : d([a.type, b.type]))),
      ),
  ],
  signatures: [
    () => crypto.sign('sha256', Buffer.from('x'), keys.RSA).length,
    () => crypto.sign('sha256', 'x', keys.RSA),
    () => crypto.createSign('SHA256').update('x').sign(keys.RSA, 'hex'),
    () => crypto.createSign('RSA-SHA512').update('x').update('y').sign(keys.RSA1, 'base64'),
    () => crypto.createSign('SHA256').update('x').sign({ key: keys.ENC, passphrase: 'pw' }, 'hex'),
    () => crypto.createSign('SHA256').update('x').sign({ key: keys.LEG, passphrase: 'pw' }, 'hex'),
    () => crypto.createSign('SHA256').update('x').sign({ key: keys.RSAJ, format: 'jwk' }, 'hex'),
    () =>
      crypto
        .createVerify('SHA256')
        .update('x')
        .verify(keys.RSAPUB, crypto.createSign('SHA256').update('x').sign(keys.RSA)),
    () =>
      crypto
        .createVerify('SHA256')
        .update('y')
        .verify(keys.RSAPUB1, crypto.createSign('SHA256').update('x').sign(keys.RSA)),
    () =>
      crypto
        .createVerify('SHA256')
        .update('x')
        .verify(
          { key: keys.RSAPUB, padding: crypto.constants.RSA_PKCS1_PSS_PADDING },
          crypto.createSign('SHA256').update('x').sign({
            key: keys.RSA,
            padding: crypto.constants.RSA_PKCS1_PSS_PADDING,
            saltLength: 32,
          }),
        ),
    () =>
      crypto
        .createVerify('SHA256')
        .update('x')
        .verify(
          keys.ECPUB,
          crypto.createSign('SHA256').update('x').sign(keys.EC1, 'base64'),
          'base64',
        ),
    () =>
      crypto.verify(
        'sha256',
        Buffer.from('x'),
        { key: keys.ECPUB, dsaEncoding: 'ieee-p1363' },
        crypto.sign('sha256', Buffer.from('x'), { key: keys.EC, dsaEncoding: 'ieee-p1363' }),
      ),
    () =>
      crypto.sign('sha256', Buffer.from('x'), { key: keys.EC, dsaEncoding: 'ieee-p1363' }).length,
    () => crypto.sign(null, Buffer.from('x'), keys.ED),
    () => crypto.sign(undefined, Buffer.from('x'), keys.ED),
    () =>
      crypto.verify(
        null,
        Buffer.from('x'),
        keys.EDPUB,
        crypto.sign(null, Buffer.from('x'), keys.ED),
      ),
    () => crypto.verify(null, Buffer.from('x'), keys.EDPUB, Buffer.alloc(3)),
    () =>
      new Promise((d, f) =>
        crypto.sign('sha256', Buffer.from('x'), keys.RSA, (e, k) => (e ? f(e) : d(k))),
      ),
  ],
  'RSA encryption': [
    () => crypto.privateDecrypt(keys.RSA, crypto.publicEncrypt(keys.RSAPUB, Buffer.from('x'))),
    () =>
      crypto.privateDecrypt(
        { key: keys.RSA, padding: 4, oaepHash: 'sha256', oaepLabel: Buffer.from('l') },
        crypto.publicEncrypt(
          { key: keys.RSAPUB, oaepHash: 'sha256', oaepLabel: Buffer.from('l') },
          Buffer.from('x'),
        ),
      ),
    () => crypto.publicDecrypt(keys.RSAPUB, crypto.privateEncrypt(keys.RSA, Buffer.from('x'))),
    () => crypto.privateEncrypt(keys.RSA, Buffer.from('x')),
    () =>
      crypto.privateDecrypt(
        { key: keys.RSA, padding: 1 },
        crypto.publicEncrypt({ key: keys.RSAPUB, padding: 1 }, Buffer.from('x')),
      ),
  ],
  'the rest': [
    () => crypto.getHashes().length > 10,
    () => crypto.getCurves(),
    () => [
      crypto.webcrypto.subtle === crypto.subtle,
      typeof crypto.getRandomValues,
      globalThis.crypto === crypto.webcrypto,
    ],
  ],
});
