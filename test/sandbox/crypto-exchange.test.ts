/** What a script makes with `crypto`, Node must be able to read, and the reverse; and long streams. */
import crypto from 'node:crypto';
import { expect } from 'chai';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';

const DATA = 'an order of 12.50, wörld';

describe('crypto between a script and Node', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  const inside = (body: string, args: unknown): Promise<unknown> =>
    sandbox.value(
      `const crypto = require('crypto'); module.exports = async ({ args }) => { ${body} };`,
      { args: JSON.stringify(args) },
    );

  for (const [kind, options, digest] of [
    ['rsa', { modulusLength: 2048 }, 'sha256'],
    ['ec', { namedCurve: 'P-384' }, 'sha384'],
    ['ec', { namedCurve: 'secp256k1' }, 'sha256'],
    ['ed25519', {}, null],
    ['ed448', {}, null],
  ] as const) {
    it(`has keys and signatures of ${kind} that Node takes`, async () => {
      const made = await inside(
        `const pair = crypto.generateKeyPairSync(args.kind, args.options);
        const data = Buffer.from(args.data);
        return { pem: pair.publicKey.export({ format: 'pem', type: 'spki' }),
          signed: crypto.sign(args.digest, data, pair.privateKey).toString('base64') };`,
        { kind, options, digest, data: DATA },
      );
      const { pem, signed } = made as { pem: string; signed: string };
      const signature = Buffer.from(signed, 'base64');
      expect(crypto.verify(digest, Buffer.from(DATA), pem, signature)).to.equal(true);
      expect(crypto.verify(digest, Buffer.from(`${DATA}!`), pem, signature)).to.equal(false);
    });
  }

  it('opens what Node sealed for it, and seals what Node opens', async () => {
    const [key, iv] = [crypto.randomBytes(32), crypto.randomBytes(12)];
    const sealing = crypto.createCipheriv('aes-256-gcm', key, iv);
    const sealed = Buffer.concat([sealing.update(DATA), sealing.final(), sealing.getAuthTag()]);
    const made = await inside(
      `const [raw, iv, sealed] = args.map((text) => Buffer.from(text, 'hex'));
      const key = await crypto.subtle.importKey('raw', raw, 'AES-GCM', false, ['encrypt', 'decrypt']);
      const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, sealed);
      const back = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, opened);
      return [new TextDecoder().decode(opened), Buffer.from(back).toString('hex')];`,
      [key, iv, sealed].map((bytes) => bytes.toString('hex')),
    );
    expect(made).to.deep.equal([DATA, sealed.toString('hex')]);
  });

  it('agrees on a secret with Node', async () => {
    const own = crypto.createECDH('prime256v1');
    const made = await inside(
      `const ecdh = crypto.createECDH('prime256v1');
      return [ecdh.generateKeys('hex', 'compressed'), ecdh.computeSecret(args, 'hex', 'hex')];`,
      own.generateKeys('hex'),
    );
    const [point, secret] = made as [string, string];
    expect(own.computeSecret(point, 'hex', 'hex')).to.equal(secret);
  });

  for (const name of ['aes-256-cbc', 'aes-128-ctr', 'aes-256-gcm', 'chacha20-poly1305']) {
    it(`streams ${name} in pieces of any size to the same bytes as Node`, async () => {
      const key = Buffer.alloc(name === 'aes-128-ctr' ? 16 : 32, 7);
      const iv = Buffer.alloc(
        name.startsWith('aes-256-cbc') || name === 'aes-128-ctr' ? 16 : 12,
        3,
      );
      const made = await inside(
        `const [key, iv] = [args.key, args.iv].map((text) => Buffer.from(text, 'hex'));
        const data = Buffer.alloc(args.length, 'abc');
        const cipher = crypto.createCipheriv(args.name, key, iv);
        const parts = [];
        for (let at = 0, size = 1; at < data.length; at += size - 1, size = (size * 7) % 65_521) {
          parts.push(cipher.update(data.subarray(at, at + size)));
          size += 1;
        }
        const sealed = Buffer.concat([...parts, cipher.final()]);
        return [parts.length, sealed.length, crypto.createHash('sha256').update(sealed).digest('hex')];`,
        { name, key: key.toString('hex'), iv: iv.toString('hex'), length: 2_000_001 },
      );
      const cipher = crypto.createCipheriv(name, key, iv);
      const sealed = Buffer.concat([cipher.update(Buffer.alloc(2_000_001, 'abc')), cipher.final()]);
      const digest = crypto.createHash('sha256').update(sealed).digest('hex');
      const [count, ...rest] = made as [number, number, string];
      expect(count).to.be.above(20);
      expect(rest).to.deep.equal([sealed.length, digest]);
    });
  }

  it('hashes many pieces, text and bytes mixed, as one', async () => {
    const pieces = Array.from({ length: 6000 }, (_item, at) =>
      at % 3 === 0 ? 'é' : `piece ${at}`,
    );
    const made = await inside(
      `const hash = crypto.createHash('sha256');
      for (const [at, text] of args.entries()) hash.update(at % 2 === 0 ? text : Buffer.from(text));
      return hash.digest('hex');`,
      pieces,
    );
    expect(made).to.equal(crypto.createHash('sha256').update(pieces.join('')).digest('hex'));
  });
});
