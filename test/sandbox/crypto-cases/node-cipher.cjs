/** Node's `crypto` where it must come to the same inside: symmetric ciphers. */
module.exports = (crypto) => ({
  ciphers: [
    () => {
      const c = crypto.createCipheriv('aes-256-cbc', Buffer.alloc(32, 1), Buffer.alloc(16, 2));
      return [c.update('hello', 'utf8', 'hex'), c.update('hello world and more'), c.final('hex')];
    },
    () => {
      const c = crypto.createCipheriv('aes-128-cbc', Buffer.alloc(16, 1), Buffer.alloc(16, 2));
      return c.update('hello wörld, hello wörld', 'utf8', 'base64') + c.final('base64');
    },
    () => {
      const c = crypto.createCipheriv('aes-128-cbc', Buffer.alloc(16, 1), Buffer.alloc(16, 2));
      return [
        c.update('hello wörld, hello wörld and on and on', 'utf8', 'base64'),
        c.update('abcdefghijklmnopqrstuvwxyz', 'utf8', 'base64'),
        c.final('base64'),
      ];
    },
    () => {
      const c = crypto.createCipheriv('aes-128-ecb', Buffer.alloc(16, 1), null);
      c.setAutoPadding(false);
      return [c.update(Buffer.alloc(32)), c.final()];
    },
    () => {
      const c = crypto.createCipheriv('aes-128-ctr', Buffer.alloc(16, 1), Buffer.alloc(16, 255));
      return [c.update('abc'), c.update('def'), c.update('x'.repeat(40)), c.final()];
    },
    () => {
      const c = crypto.createCipheriv(
        'des-ede3-cbc',
        Buffer.alloc(24, 'abcdefghijklmnopqrstuvwx'),
        Buffer.alloc(8),
      );
      return c.update('4111111111111111', 'utf8', 'hex') + c.final('hex');
    },
    () => {
      const c = crypto.createCipheriv('des-ede3', Buffer.alloc(24, 'abcdefghijklmnopqrstuvwx'), '');
      return c.update('4111111111111111', 'utf8', 'hex') + c.final('hex');
    },
    () => {
      const c = crypto.createCipheriv('aes-256-gcm', Buffer.alloc(32, 1), Buffer.alloc(12));
      c.setAAD(Buffer.from('aad'));
      return [
        c.update('hello', 'utf8'),
        c.update(' world', 'utf8', 'hex'),
        c.final(),
        c.getAuthTag(),
      ];
    },
    () => {
      const c = crypto.createCipheriv('aes-256-gcm', Buffer.alloc(32, 1), Buffer.alloc(16), {
        authTagLength: 12,
      });
      return [c.update('hello', 'utf8'), c.final(), c.getAuthTag()];
    },
    () => {
      const c = crypto.createCipheriv('chacha20-poly1305', Buffer.alloc(32, 1), Buffer.alloc(12), {
        authTagLength: 16,
      });
      c.setAAD(Buffer.from('aad'));
      return [c.update('hello', 'utf8'), c.final(), c.getAuthTag()];
    },
    () => {
      const c = crypto.createCipheriv('aes-128-ccm', Buffer.alloc(16, 1), Buffer.alloc(12), {
        authTagLength: 16,
      });
      c.setAAD(Buffer.from('aad'), { plaintextLength: 5 });
      return [c.update('hello', 'utf8'), c.final(), c.getAuthTag()];
    },
    () => {
      const k = Buffer.alloc(32, 1),
        v = Buffer.alloc(16, 2);
      const c = crypto.createCipheriv('aes-256-cbc', k, v);
      const x = Buffer.concat([c.update('é€😀'.repeat(20)), c.final()]);
      const d = crypto.createDecipheriv('aes-256-cbc', k, v);
      const o = [];
      for (let i = 0; i < x.length; i += 7)
        o.push(d.update(x.subarray(i, i + 7), undefined, 'utf8'));
      o.push(d.final('utf8'));
      return o;
    },
    () =>
      crypto
        .createCipheriv('aes-256-cbc', 'a'.repeat(32), 'b'.repeat(16))
        .update('x', 'utf8', 'hex'),
    () => crypto.createCipheriv('aes-256-cbc', 'a'.repeat(32), 'b'.repeat(16)).final('hex'),
    () => crypto.getCipherInfo('aes-256-gcm'),
    () => crypto.getCipherInfo('nope'),
    () => {
      const k = crypto.generateKeyPairSync('rsa', {
        modulusLength: 1024,
        publicKeyEncoding: { type: 'spki', format: 'pem' },
        privateKeyEncoding: {
          type: 'pkcs8',
          format: 'pem',
          cipher: 'aes-256-cbc',
          passphrase: 'pw',
        },
      });
      return [
        k.privateKey.slice(0, 37),
        k.publicKey.slice(0, 26),
        crypto.createPrivateKey({ key: k.privateKey, passphrase: 'pw' }).asymmetricKeyDetails,
      ];
    },
  ],
});
