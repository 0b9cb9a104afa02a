/** What the Web Cryptography API refuses; the name of the error must be the same inside. */
module.exports = (crypto, keys) => ({
  refusals: [
    () => crypto.subtle.digest('MD5', Buffer.from('x')),
    () => crypto.subtle.digest('SHA-256', 'x'),
    () =>
      crypto.subtle.importKey('raw', Buffer.from('key'), { name: 'HMAC', hash: 'SHA-256' }, true, [
        'encrypt',
      ]),
    () =>
      crypto.subtle.importKey(
        'raw',
        Buffer.from('key'),
        { name: 'HMAC', hash: 'SHA-256' },
        true,
        [],
      ),
    () => crypto.subtle.importKey('raw', Buffer.from('key'), { name: 'HMAC' }, true, ['sign']),
    () =>
      crypto.subtle.importKey('raw', Buffer.alloc(0), { name: 'HMAC', hash: 'SHA-256' }, true, [
        'sign',
      ]),
    () =>
      crypto.subtle.importKey('raw', Buffer.from('key'), { name: 'AES-GCM' }, true, ['encrypt']),
    () => crypto.subtle.importKey('raw', Buffer.from('key'), 'nope', true, ['encrypt']),
    () => crypto.subtle.importKey('nope', Buffer.from('key'), 'AES-GCM', true, ['encrypt']),
    async () => {
      const k = await crypto.subtle.importKey('raw', Buffer.alloc(16, 1), 'AES-GCM', true, [
        'encrypt',
        'decrypt',
      ]);
      const iv = Buffer.alloc(12, 2);
      const e = await crypto.subtle.encrypt(
        { name: 'AES-GCM', iv, tagLength: 96 },
        k,
        Buffer.from('hello'),
      );
      return [e, await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, k, e)];
    },
    async () => {
      const k = await crypto.subtle.importKey('raw', Buffer.alloc(16, 1), 'AES-GCM', true, [
        'encrypt',
      ]);
      return crypto.subtle.decrypt({ name: 'AES-GCM', iv: Buffer.alloc(12) }, k, Buffer.alloc(30));
    },
    () => crypto.subtle.importKey('raw', Buffer.from('pw'), 'PBKDF2', true, ['deriveBits']),
    () =>
      crypto.subtle.importKey(
        'spki',
        Buffer.from(keys.SPKI, 'base64'),
        { name: 'ECDSA', namedCurve: 'P-256' },
        true,
        ['verify'],
      ),
    () =>
      crypto.subtle.importKey(
        'spki',
        Buffer.from('abc'),
        { name: 'ECDSA', namedCurve: 'P-256' },
        true,
        ['verify'],
      ),
    () =>
      crypto.subtle.importKey(
        'pkcs8',
        Buffer.from(keys.ECP8, 'base64'),
        { name: 'ECDSA', namedCurve: 'P-384' },
        true,
        ['sign'],
      ),
    () => crypto.subtle.generateKey({ name: 'AES-GCM', length: 100 }, true, ['encrypt']),
    () => crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, true, []),
    () => crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, true, ['sign']),
    () => crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify']),
    () =>
      crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'encrypt']),
    () => crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'nope' }, true, ['sign']),
    () => (async () => crypto.subtle.sign('HMAC', {}, Buffer.from('x')))(),
    () =>
      crypto.subtle.importKey(
        'jwk',
        { kty: 'oct', k: 'AAAA', ext: false },
        { name: 'HMAC', hash: 'SHA-256' },
        true,
        ['sign'],
      ),
    () =>
      crypto.subtle.importKey(
        'jwk',
        { kty: 'oct', k: 'AAAA', key_ops: ['verify'] },
        { name: 'HMAC', hash: 'SHA-256' },
        true,
        ['sign'],
      ),
    () =>
      crypto.subtle.importKey(
        'jwk',
        { kty: 'RSA', k: 'AAAA' },
        { name: 'HMAC', hash: 'SHA-256' },
        true,
        ['sign'],
      ),
    () =>
      crypto.subtle.importKey(
        'jwk',
        { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA' },
        { name: 'ECDSA', namedCurve: 'P-256' },
        true,
        ['verify'],
      ),
    () => crypto.getRandomValues(new Float32Array(2)),
    () => crypto.getRandomValues(new Uint8Array(65537)),
    () => new globalThis.CryptoKey(),
  ],
});
