/** Node's `crypto` where it must come to the same inside: digests, derived keys, random values. */
module.exports = (crypto) => ({
  digests: [
    () =>
      crypto.createHash('sha256').update('a').update(Buffer.from('é')).update('é€😀').digest('hex'),
    () => crypto.createHash('SHA512').update('abcd', 'hex').update('aGk=', 'base64').digest(),
    () =>
      crypto
        .createHash('md5')
        .update(new Uint16Array([1, 2, 300]))
        .digest('base64'),
    () => crypto.createHash('sha1').digest('base64url'),
    () => crypto.createHash('sha1').update('x').digest('latin1'),
    () => crypto.createHash('shake256', { outputLength: 11 }).update('x').digest('hex'),
    () => crypto.createHash('RSA-SHA256').update('x').digest('hex'),
    () => {
      const h = crypto.createHash('sha256').update('a');
      const c = h.copy();
      return [h.update('b').digest('hex'), c.update('c').digest('hex')];
    },
    () => crypto.hash('sha256', 'x'),
    () => crypto.hash('sha256', 'x', 'base64'),
    () => crypto.hash('sha256', Buffer.from('x'), 'buffer'),
  ],
  'message authentication': [
    () => crypto.createHmac('sha256', 'key').update('data').digest('hex'),
    () =>
      crypto
        .createHmac('sha256', Buffer.from([1, 2, 3]))
        .update('data')
        .digest(),
    () =>
      crypto
        .createHmac('sha256', crypto.createSecretKey('key', 'utf8'))
        .update('data')
        .digest('hex'),
    () => {
      const h = crypto.createHmac('sha256', 'k');
      h.digest();
      return h.digest('hex');
    },
  ],
  'key derivation': [
    () => crypto.pbkdf2Sync('p', 's', 1000, 32, 'sha256'),
    () => crypto.pbkdf2Sync('p', 's', 1, 20, 'sha1'),
    () => crypto.scryptSync('p', 's', 32),
    () => crypto.scryptSync('p', 's', 16, { N: 1024, r: 8, p: 2 }),
    () => crypto.hkdfSync('sha256', 'key', 'salt', 'info', 42),
    () => crypto.hkdfSync('sha256', Buffer.alloc(22, 0xb), Buffer.alloc(0), Buffer.alloc(0), 42),
    () =>
      new Promise((d, f) => crypto.pbkdf2('p', 's', 1, 20, 'sha1', (e, k) => (e ? f(e) : d(k)))),
    () => new Promise((d, f) => crypto.scrypt('p', 's', 20, (e, k) => (e ? f(e) : d(k)))),
    () =>
      new Promise((d, f) => crypto.hkdf('sha1', 'k', 's', 'i', 20, (e, k) => (e ? f(e) : d(k)))),
  ],
  'random values': [
    () => crypto.randomBytes(10).length,
    () => crypto.randomInt(5) < 5,
    () => crypto.randomInt(5, 6),
    () => [crypto.randomUUID().length, /^[0-9a-f-]{36}$/.test(crypto.randomUUID())],
    () => crypto.randomFillSync(Buffer.alloc(4), 2).subarray(0, 2),
    () => crypto.timingSafeEqual(Buffer.from('a'), Buffer.from('a')),
    () => crypto.timingSafeEqual(Buffer.from('a'), Buffer.from('b')),
  ],
});
