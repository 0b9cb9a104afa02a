/** The Web Cryptography API where it must come to the same inside: digests and secret keys. */
module.exports = (crypto, keys) => ({
  'digests and HMAC': [
    () => crypto.subtle.digest('SHA-256', Buffer.from('x')),
    () => crypto.subtle.digest({ name: 'sha-512' }, new ArrayBuffer(3)),
    async () => {
      const k = await crypto.subtle.importKey(
        'raw',
        Buffer.from('key'),
        { name: 'HMAC', hash: 'SHA-256' },
        true,
        ['sign', 'verify'],
      );
      return [
        k.type,
        k.extractable,
        k.algorithm,
        k.usages,
        String(k),
        await crypto.subtle.sign('HMAC', k, Buffer.from('data')),
        await crypto.subtle.exportKey('jwk', k),
        await crypto.subtle.exportKey('raw', k),
        await crypto.subtle.verify(
          'HMAC',
          k,
          await crypto.subtle.sign('HMAC', k, Buffer.from('data')),
          Buffer.from('data'),
        ),
        await crypto.subtle.verify('HMAC', k, Buffer.alloc(32), Buffer.from('data')),
      ];
    },
    () =>
      (async () =>
        (
          await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-384' }, true, [
            'verify',
            'sign',
          ])
        ).algorithm)(),
    () =>
      (async () =>
        (
          await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-1', length: 160 }, true, [
            'sign',
          ])
        ).algorithm)(),
    () => crypto.getRandomValues(new Uint32Array(3)).length,
  ],
  AES: [
    async () => {
      const k = await crypto.subtle.importKey('raw', Buffer.alloc(32, 1), 'AES-GCM', true, [
        'encrypt',
        'decrypt',
      ]);
      const iv = Buffer.alloc(12, 2);
      const e = await crypto.subtle.encrypt(
        { name: 'AES-GCM', iv, additionalData: Buffer.from('aad') },
        k,
        Buffer.from('hello'),
      );
      return [
        k.algorithm,
        e,
        await crypto.subtle.decrypt(
          { name: 'AES-GCM', iv, additionalData: Buffer.from('aad') },
          k,
          e,
        ),
        await crypto.subtle.exportKey('jwk', k),
      ];
    },
    async () => {
      const k = await crypto.subtle.importKey('raw', Buffer.alloc(16, 1), 'AES-CBC', true, [
        'encrypt',
        'decrypt',
      ]);
      const iv = Buffer.alloc(16, 2);
      const e = await crypto.subtle.encrypt({ name: 'AES-CBC', iv }, k, Buffer.from('hello'));
      return [
        e,
        await crypto.subtle.decrypt({ name: 'AES-CBC', iv }, k, e),
        await crypto.subtle
          .decrypt({ name: 'AES-CBC', iv }, k, Buffer.alloc(16))
          .catch((e) => e.name),
        await crypto.subtle
          .encrypt({ name: 'AES-CBC', iv: Buffer.alloc(3) }, k, Buffer.from('hello'))
          .catch((e) => e.name),
      ];
    },
    async () => {
      const k = await crypto.subtle.importKey('raw', Buffer.alloc(16, 1), 'AES-CTR', true, [
        'encrypt',
        'decrypt',
      ]);
      return [
        await crypto.subtle.encrypt(
          { name: 'AES-CTR', counter: Buffer.alloc(16, 255), length: 64 },
          k,
          Buffer.alloc(50),
        ),
        await crypto.subtle.encrypt(
          { name: 'AES-CTR', counter: Buffer.alloc(16, 255), length: 128 },
          k,
          Buffer.alloc(50),
        ),
        await crypto.subtle.encrypt(
          { name: 'AES-CTR', counter: Buffer.alloc(16, 254), length: 4 },
          k,
          Buffer.alloc(50),
        ),
        await crypto.subtle
          .encrypt(
            { name: 'AES-CTR', counter: Buffer.alloc(16, 254), length: 1 },
            k,
            Buffer.alloc(50),
          )
          .catch((e) => e.name),
      ];
    },
    async () => {
      const k = await crypto.subtle.importKey('raw', Buffer.alloc(32, 1), 'AES-KW', true, [
        'wrapKey',
        'unwrapKey',
      ]);
      const s = await crypto.subtle.importKey('raw', Buffer.alloc(32, 7), 'AES-GCM', true, [
        'encrypt',
      ]);
      const w = await crypto.subtle.wrapKey('raw', s, k, 'AES-KW');
      const u = await crypto.subtle.unwrapKey('raw', w, k, 'AES-KW', 'AES-GCM', true, ['encrypt']);
      return [w, await crypto.subtle.exportKey('raw', u)];
    },
    async () => {
      const k = await crypto.subtle.importKey('raw', Buffer.alloc(32, 1), 'AES-GCM', true, [
        'wrapKey',
        'unwrapKey',
      ]);
      const s = await crypto.subtle.importKey('raw', Buffer.alloc(32, 7), 'AES-GCM', true, [
        'encrypt',
      ]);
      const p = { name: 'AES-GCM', iv: Buffer.alloc(12) };
      const w = await crypto.subtle.wrapKey('jwk', s, k, p);
      const u = await crypto.subtle.unwrapKey('jwk', w, k, p, 'AES-GCM', true, ['encrypt']);
      return [await crypto.subtle.exportKey('raw', u)];
    },
    async () => {
      const k = await crypto.subtle.importKey('raw', Buffer.from('pw'), 'PBKDF2', false, [
        'deriveBits',
        'deriveKey',
      ]);
      const p = { name: 'PBKDF2', hash: 'SHA-256', salt: Buffer.from('salt'), iterations: 1000 };
      const a = await crypto.subtle.deriveKey(p, k, { name: 'AES-GCM', length: 256 }, true, [
        'encrypt',
      ]);
      const b = await crypto.subtle.deriveKey(p, k, { name: 'HMAC', hash: 'SHA-512' }, true, [
        'sign',
      ]);
      return [
        await crypto.subtle.deriveBits(p, k, 256),
        await crypto.subtle.exportKey('raw', a),
        await crypto.subtle.exportKey('raw', b),
        b.algorithm,
        await crypto.subtle.deriveBits(p, k, 7).catch((e) => e.name),
      ];
    },
    async () => {
      const a = await crypto.subtle.importKey(
        'pkcs8',
        Buffer.from(keys.ECP8, 'base64'),
        { name: 'ECDH', namedCurve: 'P-256' },
        true,
        ['deriveBits', 'deriveKey'],
      );
      const u = await crypto.subtle.importKey(
        'spki',
        Buffer.from(keys.ECSPKI, 'base64'),
        { name: 'ECDH', namedCurve: 'P-256' },
        true,
        [],
      );
      return [
        await crypto.subtle.deriveBits({ name: 'ECDH', public: u }, a, 256),
        await crypto.subtle.deriveBits({ name: 'ECDH', public: u }, a, null),
        await crypto.subtle.deriveBits({ name: 'ECDH', public: u }, a, 128),
        await crypto.subtle.deriveBits({ name: 'ECDH', public: a }, a, 128).catch((e) => e.name),
        await crypto.subtle.deriveBits({ name: 'ECDH', public: u }, a, 999).catch((e) => e.name),
        await crypto.subtle.exportKey(
          'raw',
          await crypto.subtle.deriveKey(
            { name: 'ECDH', public: u },
            a,
            { name: 'AES-CBC', length: 256 },
            true,
            ['encrypt'],
          ),
        ),
      ];
    },
    () => {
      const k = crypto.createSecretKey(Buffer.alloc(32, 1));
      const c = k.toCryptoKey('AES-GCM', true, ['encrypt']);
      return [
        c.algorithm,
        c.type,
        crypto.KeyObject.from(c).equals(k),
        c instanceof globalThis.CryptoKey,
        crypto.createHmac('sha256', k).update('x').digest('hex'),
      ];
    },
  ],
  'key derivation': [
    async () => {
      const k = await crypto.subtle.importKey('raw', Buffer.from('pw'), 'HKDF', false, [
        'deriveBits',
      ]);
      return crypto.subtle.deriveBits(
        { name: 'HKDF', hash: 'SHA-384', salt: Buffer.alloc(0), info: Buffer.from('i') },
        k,
        512,
      );
    },
  ],
});
