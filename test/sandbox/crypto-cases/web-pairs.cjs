/** The Web Cryptography API where it must come to the same inside: pairs of keys. */
module.exports = (crypto, keys) => ({
  RSA: [
    async () => {
      const k = await crypto.subtle.importKey(
        'spki',
        Buffer.from(keys.SPKI, 'base64'),
        { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
        true,
        ['verify'],
      );
      const q = await crypto.subtle.importKey(
        'pkcs8',
        Buffer.from(keys.PKCS8, 'base64'),
        { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
        true,
        ['sign'],
      );
      const s = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', q, Buffer.from('x'));
      return [
        k.algorithm,
        q.type,
        s,
        await crypto.subtle.verify('RSASSA-PKCS1-v1_5', k, s, Buffer.from('x')),
        await crypto.subtle.exportKey('jwk', q),
        await crypto.subtle.exportKey('spki', k),
        await crypto.subtle.exportKey('pkcs8', k).catch((e) => e.name),
      ];
    },
    async () => {
      const k = await crypto.subtle.importKey(
        'spki',
        Buffer.from(keys.SPKI, 'base64'),
        { name: 'RSA-PSS', hash: 'SHA-512' },
        true,
        ['verify'],
      );
      const q = await crypto.subtle.importKey(
        'pkcs8',
        Buffer.from(keys.PKCS8, 'base64'),
        { name: 'RSA-PSS', hash: 'SHA-512' },
        true,
        ['sign'],
      );
      const p = { name: 'RSA-PSS', saltLength: 20 };
      const s = await crypto.subtle.sign(p, q, Buffer.from('x'));
      return [
        s.byteLength,
        await crypto.subtle.verify(p, k, s, Buffer.from('x')),
        await crypto.subtle.exportKey('jwk', k),
      ];
    },
    async () => {
      const k = await crypto.subtle.importKey(
        'spki',
        Buffer.from(keys.SPKI, 'base64'),
        { name: 'RSA-OAEP', hash: 'SHA-256' },
        true,
        ['encrypt'],
      );
      const q = await crypto.subtle.importKey(
        'pkcs8',
        Buffer.from(keys.PKCS8, 'base64'),
        { name: 'RSA-OAEP', hash: 'SHA-256' },
        true,
        ['decrypt'],
      );
      const p = { name: 'RSA-OAEP', label: Buffer.from('l') };
      const s = await crypto.subtle.encrypt(p, k, Buffer.from('x'));
      return [
        s.byteLength,
        await crypto.subtle.decrypt(p, q, s),
        await crypto.subtle.exportKey('jwk', k),
        await crypto.subtle.decrypt('RSA-OAEP', q, s).catch((e) => e.name),
      ];
    },
    async () => {
      const k = await crypto.subtle.generateKey(
        {
          name: 'RSA-PSS',
          modulusLength: 2048,
          publicExponent: new Uint8Array([1, 0, 1]),
          hash: 'SHA-256',
        },
        false,
        ['sign', 'verify'],
      );
      return [
        k.publicKey.algorithm,
        k.privateKey.extractable,
        k.publicKey.extractable,
        k.privateKey.usages,
        await crypto.subtle.exportKey('pkcs8', k.privateKey).catch((e) => e.name),
      ];
    },
  ],
  curves: [
    async () => {
      const k = await crypto.subtle.importKey(
        'pkcs8',
        Buffer.from(keys.ECP8, 'base64'),
        { name: 'ECDSA', namedCurve: 'P-256' },
        true,
        ['sign'],
      );
      const u = await crypto.subtle.importKey(
        'spki',
        Buffer.from(keys.ECSPKI, 'base64'),
        { name: 'ECDSA', namedCurve: 'P-256' },
        true,
        ['verify'],
      );
      const p = { name: 'ECDSA', hash: 'SHA-256' };
      const s = await crypto.subtle.sign(p, k, Buffer.from('x'));
      const raw = await crypto.subtle.exportKey('raw', u);
      const r = await crypto.subtle.importKey(
        'raw',
        raw,
        { name: 'ECDSA', namedCurve: 'P-256' },
        true,
        ['verify'],
      );
      return [
        s.byteLength,
        await crypto.subtle.verify(p, r, s, Buffer.from('x')),
        raw,
        await crypto.subtle.exportKey('jwk', u),
        await crypto.subtle.exportKey('jwk', k),
        await crypto.subtle.exportKey('pkcs8', k),
        k.algorithm,
      ];
    },
    async () => {
      const k = await crypto.subtle.importKey(
        'pkcs8',
        Buffer.from(keys.EDP8, 'base64'),
        'Ed25519',
        true,
        ['sign'],
      );
      const u = await crypto.subtle.importKey(
        'jwk',
        { kty: 'OKP', crv: 'Ed25519', x: keys.EDX },
        'Ed25519',
        true,
        ['verify'],
      );
      const s = await crypto.subtle.sign('Ed25519', k, Buffer.from('x'));
      return [
        s,
        await crypto.subtle.verify('Ed25519', u, s, Buffer.from('x')),
        await crypto.subtle.exportKey('raw', u),
        k.algorithm,
        (await crypto.subtle.exportKey('jwk', k)).d,
      ];
    },
    async () => {
      const k = await crypto.subtle.generateKey('X25519', true, ['deriveBits']);
      const j = await crypto.subtle.generateKey({ name: 'X25519' }, true, ['deriveBits']);
      const a = await crypto.subtle.deriveBits(
          { name: 'X25519', public: j.publicKey },
          k.privateKey,
          256,
        ),
        b = await crypto.subtle.deriveBits(
          { name: 'X25519', public: k.publicKey },
          j.privateKey,
          256,
        );
      return [Buffer.from(a).equals(Buffer.from(b)), k.publicKey.usages];
    },
    async () => {
      const c = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
        'sign',
        'verify',
      ]);
      const k = crypto.KeyObject.from(c.privateKey);
      return [
        k.type,
        crypto.verify(
          'sha256',
          Buffer.from('x'),
          crypto.KeyObject.from(c.publicKey),
          crypto.sign('sha256', Buffer.from('x'), k),
        ),
      ];
    },
  ],
});
