/** The host's side of `crypto`: known answers, bounds, and whatever else may come from inside. */
import crypto from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { answerCrypto } from '../../../shared/sandbox/host/answer-crypto.ts';

type Piece = Buffer | string | null;

const OPERATIONS = [
  ...['hash', 'hmac', 'pbkdf2', 'scrypt', 'hkdf', 'random', 'random_integer', 'names', 'cipher'],
  ...['cipher_info', 'import_key', 'export_key', 'generate_keys', 'sign', 'verify', 'encrypt_rsa'],
  ...['diffie_hellman', 'ecdh_generate', 'ecdh_derive', 'ecdh_convert', '__proto__', 'constructor'],
];

/** A question as the prelude writes it. */
function ask(operation: string, values: readonly unknown[], pieces: readonly Piece[] = []): string {
  const texts = pieces.map((piece) =>
    piece === null ? null : typeof piece === 'string' ? piece : piece.toString('latin1'),
  );
  const head = JSON.stringify([texts.map((text) => text?.length ?? null), ...values]);
  return answerCrypto(operation, `${head}\n${texts.join('')}`);
}

function failure(answer: string): { name: string; code?: string; message: string } {
  expect(answer[0], answer.slice(0, 80)).to.equal('!');
  return JSON.parse(answer.slice(1));
}

/** The bytes of an answer that has one piece. */
const bytesOf = (answer: string): Buffer =>
  Buffer.from(answer.slice(answer.indexOf('\n') + 1), 'latin1');

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('answerCrypto', () => {
  it('computes the HMAC of RFC 4231, test case 1', () => {
    const answer = ask('hmac', ['sha256', 'hex'], [Buffer.alloc(20, 0x0b), 'Hi There']);
    expect(answer).to.include('b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7');
  });

  it('derives the keys of RFC 6070, RFC 7914 and RFC 5869', () => {
    const pbkdf2 = ask('pbkdf2', [4096, 20, 'sha1'], ['password', 'salt']);
    expect(bytesOf(pbkdf2).toString('hex')).to.equal('4b007901b765489abead49d926f721d065a429c1');
    const scrypt = ask('scrypt', [64, 1024, 8, 16], ['password', 'NaCl']);
    expect(bytesOf(scrypt).toString('hex')).to.match(/^fdbabe1c9d3472007856e7190d01e9fe7c6ad7cb/);
    const [key, salt] = [Buffer.alloc(22, 0x0b), hex('000102030405060708090a0b0c')];
    const hkdf = ask('hkdf', ['sha256', 42], [key, salt, hex('f0f1f2f3f4f5f6f7f8f9')]);
    expect(bytesOf(hkdf).toString('hex')).to.match(/^3cb25f25faacd57a90434f64d0362f2a2d2d0a90/);
  });

  it('encrypts as in the GCM specification, test case 4', () => {
    const key = hex('feffe9928665731c6d6a8f9467308308');
    const text = hex('d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72');
    const additional = hex('feedfacedeadbeeffeedfacedeadbeefabaddad2');
    const pieces = [key, hex('cafebabefacedbaddecaf888'), additional, null, text];
    const answer = ask('cipher', ['aes-128-gcm', true, true, 0, {}, true], pieces);
    expect(bytesOf(answer).subarray(0, 32).toString('hex')).to.equal(
      '42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e',
    );
  });

  it('signs as in RFC 8032, test 2', () => {
    const seed = hex('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb');
    const der = Buffer.concat([hex('302e020100300506032b657004220420'), seed]);
    const answer = ask('sign', [null, { format: 'der', type: 'pkcs8' }], [der, null, hex('72')]);
    expect(bytesOf(answer).toString('hex')).to.match(/^92a009a9f0d4cab8720e820b5f642540a2b27b54/);
  });

  for (const [what, operation, values, pieces] of [
    ['rounds of PBKDF2', 'pbkdf2', [10_000_001, 32, 'sha256'], ['p', 's']],
    ['rounds and blocks of PBKDF2', 'pbkdf2', [1_000_001, 200, 'sha1'], ['p', 's']],
    ['rounds of a slower digest', 'pbkdf2', [3_400_000, 32, 'sha512'], ['p', 's']],
    ['rounds of the slowest digests', 'pbkdf2', [1_700_000, 32, 'sha3-512'], ['p', 's']],
    [
      ...(['what is wrapped', 'cipher', ['aes256-wrap', true, true, 0, {}, true]] as const),
      ['k'.repeat(32), 'i'.repeat(8), null, null, 'x'.repeat(65_544)],
    ],
    ['a derived key', 'pbkdf2', [1, 1_000_000, 'sha1'], ['p', 's']],
    ['a salt', 'pbkdf2', [1, 20, 'sha1'], ['p', 's'.repeat(5000)]],
    ['memory of scrypt', 'scrypt', [32, 2 ** 17, 8, 1], ['p', 's']],
    ['lanes of scrypt', 'scrypt', [32, 16, 1, 2 ** 15], ['p', 's']],
    ['work of scrypt', 'scrypt', [32, 2 ** 15, 8, 16], ['p', 's']],
    ['random bytes', 'random', [2 ** 20 + 1], []],
    ['bits of RSA', 'generate_keys', ['rsa', { modulusLength: 4097 }], []],
    ['bytes of an extendable digest', 'hash', ['shake256', 2 ** 20], ['x']],
    ['input', 'hash', ['sha256', null], ['x'.repeat(16 * 1024 * 1024 + 1)]],
    ['material of a key', 'import_key', [{ format: 'pem' }, true], ['x'.repeat(40_000), null]],
  ] as const) {
    it(`bounds ${what}`, () => {
      expect(failure(ask(operation, values, pieces))).to.include({ name: 'RangeError' });
    });
  }

  it('refuses an encrypted key that asks for long stretching', () => {
    const { privateKey } = crypto.generateKeyPairSync('ed25519');
    const locked = { type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'pw' } as const;
    const der = privateKey.export({ ...locked, format: 'der' });
    const spec = { format: 'der', type: 'pkcs8' };
    expect(ask('import_key', [spec, true], [der, 'pw'])[0]).to.equal('[');
    const rounds = der.indexOf(hex('02020800'));
    expect(rounds, 'where OpenSSL writes 2,048').to.be.above(0);
    const costly = Buffer.concat([
      der.subarray(0, rounds),
      hex('02032dc6c0'),
      der.subarray(rounds + 4),
    ]);
    // The lengths of the five sequences around it grow by one.
    for (let at = 0; at < rounds; at += 1) {
      const isSequence = costly[at] === 0x30 && (costly[at + 1] ?? 0) > 0x20;
      if (isSequence && (costly[at + 1] ?? 0) < 0x80) costly[at + 1] = (costly[at + 1] ?? 0) + 1;
      else if (isSequence && costly[at + 1] === 0x81) costly[at + 2] = (costly[at + 2] ?? 0) + 1;
    }
    const refused = failure(ask('import_key', [spec, true], [costly, 'pw']));
    expect(refused.message).to.equal('The key asks for more work than a script may do.');
    const pem = `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${costly.toString('base64')}\n-----END ENCRYPTED PRIVATE KEY-----\n`;
    expect(failure(ask('import_key', [{ format: 'pem' }, true], [pem, 'pw'])).code).to.equal(
      'ERR_OUT_OF_RANGE',
    );
  });

  it('takes no key of another kind, no engine, and no path', () => {
    const { publicKey } = crypto.generateKeyPairSync('dsa', {
      modulusLength: 1024,
      divisorLength: 160,
    });
    const dsa = publicKey.export({ format: 'der', type: 'spki' });
    const refused = failure(
      ask('import_key', [{ format: 'der', type: 'spki' }, false], [dsa, null]),
    );
    expect(refused.code).to.equal('ERR_CRYPTO_UNSUPPORTED_OPERATION');
    for (const text of ['/etc/ssl/private/key.pem', 'file:///etc/passwd', 'engine:pkcs11']) {
      expect(failure(ask('import_key', [{ format: 'pem' }, true], [text, null])).code).to.equal(
        'ERR_OSSL_UNSUPPORTED',
      );
    }
    expect(failure(ask('hash', ['/etc/../sha256?x=y', null], ['x'])).code).to.equal(
      'ERR_CRYPTO_INVALID_DIGEST',
    );
  });

  it('tells no received value and no place of the host', () => {
    const secret = 'A-SECRET-VALUE';
    for (const answer of [
      ask('hash', [secret, null], ['x']),
      ask('hash', [{ secret }, null], ['x']),
      ask('cipher', [secret, true, true, 0, {}], [secret, secret]),
      ask('sign', ['sha256', { format: secret }], [secret, secret, secret]),
      ask('generate_keys', [secret, { namedCurve: secret }]),
      ask('generate_keys', ['ec', { namedCurve: secret }]),
      ask(secret, []),
      ask('random_integer', [5_000_000, 4711]),
      answerCrypto('hash', `{${secret}`),
      answerCrypto('hash', `[[${secret}\n`),
    ]) {
      expect(failure(answer).message).to.not.match(/SECRET|4711|node:|\/|file/);
    }
  });

  it('answers with text whatever comes, and never throws', () => {
    const operation = fc.oneof(fc.constantFrom(...OPERATIONS), fc.string(), fc.anything());
    const anything = fc.oneof(fc.string({ unit: 'binary' }), fc.anything());
    fc.assert(
      fc.property(operation, anything, (name, text) => {
        expect(answerCrypto(name, text)).to.be.a('string');
      }),
      { numRuns: 500 },
    );
  });

  it('answers with text to questions in form but not in kind', () => {
    const word = fc.constantFrom(
      'sha256',
      'aes-256-gcm',
      'ec',
      'rsa',
      'P-256',
      'prime256v1',
      'pem',
    );
    const spec = fc.record(
      {
        ...{ format: fc.constantFrom('pem', 'der', 'jwk'), type: fc.constantFrom('pkcs8', 'spki') },
        ...{
          padding: fc.integer({ min: -2, max: 9 }),
          namedCurve: word,
          authTagLength: fc.nat(20),
        },
      },
      { requiredKeys: [] },
    );
    const value = fc.oneof(
      word,
      spec,
      fc.boolean(),
      fc.integer({ min: -1, max: 600 }),
      fc.jsonValue(),
    );
    const piece = fc.oneof(
      fc.constant(null),
      fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom(
        '{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}',
        '{"kty":"RSA","n":"AA"}',
        '{}',
      ),
      fc.constantFrom(Buffer.alloc(16), Buffer.alloc(32), Buffer.alloc(12)),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...OPERATIONS),
        fc.array(value, { maxLength: 6 }),
        fc.array(piece, { maxLength: 6 }),
        (name, values, pieces) => {
          expect(ask(name, values, pieces)).to.be.a('string');
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('survives keys with bytes changed', () => {
    const pair = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const der = pair.privateKey.export({ format: 'der', type: 'pkcs8' });
    const changes = fc.array(fc.tuple(fc.nat(der.length - 1), fc.nat(255)), { maxLength: 4 });
    fc.assert(
      fc.property(changes, (list) => {
        const changed = Buffer.from(der);
        for (const [at, byte] of list) changed[at] = byte;
        const values = ['sha256', { format: 'der', type: 'pkcs8' }];
        expect(ask('sign', values, [changed, null, 'x'])).to.be.a('string');
      }),
      { numRuns: 500 },
    );
  });
});
