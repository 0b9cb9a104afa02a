/** What Node's `crypto` refuses; inside it must be refused with the same class and code. */
module.exports = (crypto, keys) => ({
  'digests and random values': [
    () => crypto.createHash('nope'),
    () => crypto.createHash(),
    () => crypto.createHash('sha256').update(5),
    () => crypto.createHash('sha256').update(),
    () => crypto.createHash('sha256').update(null),
    () => {
      const h = crypto.createHash('sha256');
      h.digest();
      h.update('x');
    },
    () => {
      const h = crypto.createHash('sha256');
      h.digest();
      h.digest();
    },
    () => crypto.createHmac('sha256'),
    () => crypto.createHmac('nope', 'k'),
    () => crypto.pbkdf2Sync('p', 's', 0, 20, 'sha1'),
    () => crypto.pbkdf2Sync('p', 's', 1, 20, 'nope'),
    () => crypto.pbkdf2Sync('p', 's', 1, -1, 'sha1'),
    () => crypto.pbkdf2Sync('p', 's', 1, 'x', 'sha1'),
    () => crypto.scryptSync('p', 's', 16, { cost: 1000 }),
    () => crypto.hkdfSync('sha256', 'key', 'salt', 'info', 255 * 33),
    () => crypto.randomBytes(-1),
    () => crypto.randomBytes('x'),
    () => crypto.randomInt(5, 5),
    () => crypto.randomFillSync(Buffer.alloc(4), 5),
    () => crypto.timingSafeEqual(Buffer.from('a'), Buffer.from('bb')),
    () => crypto.timingSafeEqual('a', 'a'),
    () =>
      crypto.privateDecrypt(
        { key: keys.RSA, padding: 4, oaepHash: 'sha256' },
        crypto.publicEncrypt({ key: keys.RSAPUB }, Buffer.from('x')),
      ),
    () => crypto.randomBytes(4, 'x'),
  ],
  ciphers: [
    () => {
      const c = crypto.createCipheriv('aes-128-ecb', Buffer.alloc(16, 1), null);
      c.setAutoPadding(false);
      return [c.update(Buffer.alloc(31)), c.final()];
    },
    () => {
      const c = crypto.createCipheriv('aes-256-gcm', Buffer.alloc(32, 1), Buffer.alloc(12));
      return [c.update('hello', 'utf8'), c.getAuthTag()];
    },
    () => {
      const c = crypto.createDecipheriv('aes-256-gcm', Buffer.alloc(32, 1), Buffer.alloc(12));
      c.setAuthTag(Buffer.alloc(16));
      return [c.update('hello', 'utf8'), c.final()];
    },
    () => {
      const c = crypto.createDecipheriv('aes-256-gcm', Buffer.alloc(32, 1), Buffer.alloc(12));
      return [c.update('hello', 'utf8'), c.final()];
    },
    () => {
      const c = crypto.createDecipheriv('aes-256-gcm', Buffer.alloc(32, 1), Buffer.alloc(12));
      return c.setAuthTag(Buffer.alloc(3));
    },
    () => {
      const c = crypto.createDecipheriv('aes-256-gcm', Buffer.alloc(32, 1), Buffer.alloc(12));
      c.setAuthTag(Buffer.alloc(16));
      c.setAuthTag(Buffer.alloc(16));
    },
    () => {
      const c = crypto.createDecipheriv('aes-256-cbc', Buffer.alloc(32, 1), Buffer.alloc(16, 2));
      return [c.update(Buffer.alloc(32)), c.final()];
    },
    () => {
      const c = crypto.createDecipheriv('aes-256-cbc', Buffer.alloc(32, 1), Buffer.alloc(16, 2));
      return [c.update(Buffer.alloc(31)), c.final()];
    },
    () => {
      const c = crypto.createCipheriv('aes-256-cbc', Buffer.alloc(32, 1), Buffer.alloc(16, 2));
      c.final();
      c.final();
    },
    () => crypto.createCipheriv('aes-256-cbc', Buffer.alloc(31, 1), Buffer.alloc(16, 2)),
    () => crypto.createCipheriv('aes-256-cbc', Buffer.alloc(32, 1), Buffer.alloc(15, 2)),
    () => crypto.createCipheriv('aes-256-cbc', Buffer.alloc(32, 1), null),
    () => crypto.createCipheriv('nope', Buffer.alloc(32, 1), null),
    () => crypto.createCipheriv('aes-256-cbc', 5, null),
  ],
  keys: [
    () =>
      crypto.createSign('SHA256').update('x').sign({ key: keys.ENC, passphrase: 'wrong' }, 'hex'),
    () => crypto.createSign('SHA256').update('x').sign(keys.RSAPUB, 'hex'),
    () => crypto.createSign('SHA256').update('x').sign('nonsense', 'hex'),
    () => crypto.createSign('SHA256').update('x').sign(undefined, 'hex'),
    () => crypto.sign('sha256', Buffer.from('x'), keys.ED),
    () => crypto.publicEncrypt(keys.RSAPUB, Buffer.alloc(300)),
    () => crypto.createPrivateKey(keys.EC).export(),
    () => crypto.createPrivateKey(keys.EC).export({ format: 'pem' }),
    () => crypto.createPrivateKey(keys.EC).export({ format: 'pem', type: 'pkcs1' }),
    () => crypto.createPublicKey(keys.ECPUB).export({ format: 'nope', type: 'spki' }),
    () => crypto.createPrivateKey(keys.RSAPUB),
    () => crypto.createPublicKey('nonsense'),
    () =>
      crypto.createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }, format: 'jwk' }),
    () => crypto.createPublicKey({ key: { kty: 'nope' }, format: 'jwk' }),
    () => crypto.createPublicKey({ key: Buffer.from('nonsense'), format: 'der', type: 'spki' }),
    () => crypto.createPublicKey({ key: Buffer.from('nonsense'), format: 'der' }),
    () => crypto.createSecretKey(5),
    () =>
      crypto.diffieHellman({
        privateKey: crypto.createPrivateKey(keys.X),
        publicKey: crypto.createPublicKey(keys.ECPUB),
      }),
    () => {
      const e = crypto.createECDH('prime256v1');
      e.generateKeys();
      return e.computeSecret(Buffer.alloc(65));
    },
    () => {
      const e = crypto.createECDH('prime256v1');
      return e.getPublicKey();
    },
    () => crypto.createECDH('nope'),
    () => crypto.generateKeyPairSync('ec', { namedCurve: 'nope' }),
    () => crypto.generateKeyPairSync('nope'),
    () => crypto.generateKeyPairSync('rsa', {}),
    () => crypto.generateKeySync('aes', { length: 100 }),
  ],
});
