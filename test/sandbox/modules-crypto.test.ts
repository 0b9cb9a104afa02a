/** npm modules for keys, signatures and encryption inside scripts, against vectors and Node's own. */
import {
  constants,
  createPublicKey,
  createVerify,
  generateKeyPairSync,
  publicEncrypt,
  X509Certificate,
} from 'node:crypto';
import { expect } from 'chai';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';

/** The example of jwt.io: HS256 under `your-256-bit-secret`. */
const KNOWN_JWT =
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c';
const CLAIMS = { sub: '1234567890', name: 'John Doe', iat: 1516239022 };

const pem = { format: 'pem', type: 'pkcs8' } as const;
const spki = { format: 'pem', type: 'spki' } as const;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const keys = {
  rsa: rsa.privateKey.export(pem),
  rsaPublic: rsa.publicKey.export(spki),
  ec: ec.privateKey.export(pem),
  ecPublic: ec.publicKey.export(spki),
};

/** Whether Node finds the signature of a JWT good. */
function isGood(
  jwt: string,
  publicKey: string | Buffer,
  dsaEncoding: 'der' | 'ieee-p1363',
): boolean {
  const [head, payload, signature = ''] = jwt.split('.');
  const verify = createVerify('SHA256').update(`${head}.${payload}`);
  const key = { key: createPublicKey(publicKey), dsaEncoding };
  return verify.verify(key, Buffer.from(signature, 'base64url'));
}

describe('a script that requires', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  const inside = (body: string, args: unknown = keys): Promise<unknown> =>
    sandbox.value(`module.exports = async (req) => { ${body} };`, { args: JSON.stringify(args) });

  it('jsonwebtoken signs and verifies with a secret', async () => {
    const body = `const jwt = require('jsonwebtoken'); const secret = 'your-256-bit-secret';
      const known = ${JSON.stringify(KNOWN_JWT)}; let late; let forged;
      try { jwt.verify(jwt.sign({ exp: 1 }, secret), secret); } catch (error) { late = error.name; }
      try { jwt.verify(known.slice(0, -2) + 'AA', secret); } catch (error) { forged = [error.name, error instanceof jwt.JsonWebTokenError]; }
      return [jwt.sign(${JSON.stringify(CLAIMS)}, secret), jwt.verify(known, secret), late, forged, jwt.decode(known, { complete: true }).header];`;
    expect(await inside(body)).to.deep.equal([
      ...[KNOWN_JWT, CLAIMS, 'TokenExpiredError', ['JsonWebTokenError', true]],
      { alg: 'HS256', typ: 'JWT' },
    ]);
  });

  it('jsonwebtoken signs with RSA and EC keys what Node verifies', async () => {
    const body = `const jwt = require('jsonwebtoken'); const { rsa, rsaPublic, ec, ecPublic } = req.args;
      const tokens = [jwt.sign({ a: 1 }, rsa, { algorithm: 'RS256', expiresIn: '1h' }), jwt.sign({ a: 2 }, ec, { algorithm: 'ES256' })];
      return [...tokens, jwt.verify(tokens[0], rsaPublic, { algorithms: ['RS256'] }).a, jwt.verify(tokens[1], ecPublic).a];`;
    const [byRsa, byEc, ...read] = (await inside(body)) as [string, string, number, number];
    expect(isGood(byRsa, keys.rsaPublic, 'der')).to.equal(true);
    expect(isGood(byEc, keys.ecPublic, 'ieee-p1363')).to.equal(true);
    expect(read).to.deep.equal([1, 2]);
  });

  it('jose verifies and signs JWTs', async () => {
    const body = `const jose = require('jose'); const secret = new TextEncoder().encode('your-256-bit-secret');
      const { payload } = await jose.jwtVerify(${JSON.stringify(KNOWN_JWT)}, secret);
      const key = await jose.importPKCS8(req.args.rsa, 'RS256');
      const byRsa = await new jose.SignJWT({ a: 1 }).setProtectedHeader({ alg: 'RS256' }).setIssuedAt().setExpirationTime('1h').sign(key);
      const byEc = await new jose.SignJWT({ a: 2 }).setProtectedHeader({ alg: 'ES256' }).sign(await jose.importPKCS8(req.args.ec, 'ES256'));
      const read = await jose.jwtVerify(byRsa, await jose.importSPKI(req.args.rsaPublic, 'RS256'));
      const forged = await jose.jwtVerify(byRsa.slice(0, -4) + 'AAAA', await jose.importSPKI(req.args.rsaPublic, 'RS256')).catch((error) => error.code);
      return [byRsa, byEc, payload, read.payload.a, forged];`;
    const [byRsa, byEc, ...read] = (await inside(body)) as [string, string, ...unknown[]];
    expect(isGood(byRsa, keys.rsaPublic, 'der')).to.equal(true);
    expect(isGood(byEc, keys.ecPublic, 'ieee-p1363')).to.equal(true);
    expect(read).to.deep.equal([CLAIMS, 1, 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED']);
  });

  it('jose encrypts and decrypts', async () => {
    const body = `const jose = require('jose'); const text = new TextEncoder().encode('4242424242424242');
      const read = async (made, key) => new TextDecoder().decode((await jose.compactDecrypt(made, key)).plaintext);
      const forRsa = await new jose.CompactEncrypt(text).setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM' }).encrypt(await jose.importSPKI(req.args.rsaPublic, 'RSA-OAEP-256'));
      const forEc = await new jose.CompactEncrypt(text).setProtectedHeader({ alg: 'ECDH-ES+A256KW', enc: 'A128CBC-HS256' }).encrypt(await jose.importSPKI(req.args.ecPublic, 'ECDH-ES+A256KW'));
      return [await read(forRsa, await jose.importPKCS8(req.args.rsa, 'RSA-OAEP-256')), await read(forEc, await jose.importPKCS8(req.args.ec, 'ECDH-ES+A256KW'))];`;
    expect(await inside(body)).to.deep.equal(['4242424242424242', '4242424242424242']);
  });

  it('crypto-js gets known hashes, HMACs and ciphertexts', async () => {
    const body = `const C = require('crypto-js'); const hex = C.enc.Hex.parse;
      const aes = C.AES.encrypt(hex('6bc1bee22e409f96e93d7e117393172a'), hex('2b7e151628aed2a6abf7158809cf4f3c'),
        { iv: hex('000102030405060708090a0b0c0d0e0f'), padding: C.pad.NoPadding });
      const boxed = C.AES.encrypt('secret', 'passphrase').toString();
      return [C.HmacSHA256('what do ya want for nothing?', 'Jefe').toString(), aes.ciphertext.toString(), C.MD5('abc').toString(),
        C.AES.decrypt(boxed, 'passphrase').toString(C.enc.Utf8), C.lib.WordArray.random(16).sigBytes, C.enc.Base64.stringify(C.SHA1('abc'))];`;
    // RFC 4231 test case 2; NIST SP 800-38A F.2.1; RFC 1321; FIPS 180-4.
    expect(await inside(body)).to.deep.equal([
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
      '7649abac8119b246cee98e9b12e9197d',
      '900150983cd24fb0d6963f7d28e17f72',
      ...['secret', 16, 'qZk+NkcGgWq6PiVxeFDCbJzQ2J0='],
    ]);
  });

  it('node-forge gets AES-GCM, RSA and key derivation that agree with Node', async () => {
    const sealed = publicEncrypt(
      { key: keys.rsaPublic, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' },
      Buffer.from('for forge'),
    );
    // Test case 4 of the GCM specification, without additional data and cut to one block.
    const body = `const forge = require('node-forge'); const { hexToBytes, bytesToHex, createBuffer } = forge.util;
      const cipher = forge.cipher.createCipher('AES-GCM', hexToBytes('feffe9928665731c6d6a8f9467308308'));
      cipher.start({ iv: hexToBytes('cafebabefacedbaddecaf888') }); cipher.update(createBuffer(hexToBytes('d9313225f88406e5a55909c5aff5269a'))); cipher.finish();
      const key = forge.pki.privateKeyFromPem(req.args.rsa);
      const opened = key.decrypt(forge.util.decode64(req.args.sealed), 'RSA-OAEP', { md: forge.md.sha256.create(), mgf1: { md: forge.md.sha256.create() } });
      const md = forge.md.sha256.create().update('signed', 'utf8');
      return [cipher.output.toHex(), opened, bytesToHex(forge.pkcs5.pbkdf2('password', 'salt', 2, 20)), forge.util.encode64(key.sign(md)), forge.random.getBytesSync(8).length];`;
    const [aes, opened, derived, signature, random] = (await inside(body, {
      ...keys,
      sealed: sealed.toString('base64'),
    })) as [string, string, string, string, number];
    expect([aes, opened, random]).to.deep.equal([
      ...['42831ec2217774244b7221b784d0d49c', 'for forge', 8],
    ]);
    // RFC 6070, second vector.
    expect(derived).to.equal('ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957');
    const verify = createVerify('SHA256').update('signed');
    expect(verify.verify(keys.rsaPublic, signature, 'base64')).to.equal(true);
  });

  it('node-forge makes certificates and PKCS#7 messages', async () => {
    const body = `const { pki, pkcs7, util, md } = require('node-forge');
      const privateKey = pki.privateKeyFromPem(req.args.rsa); const cert = pki.createCertificate();
      cert.publicKey = pki.publicKeyFromPem(req.args.rsaPublic); cert.serialNumber = '01';
      cert.validity.notBefore = new Date('2023-01-01'); cert.validity.notAfter = new Date('2033-01-01');
      cert.setSubject([{ name: 'commonName', value: 'Acme' }]); cert.setIssuer([{ name: 'commonName', value: 'Acme' }]); cert.sign(privateKey, md.sha256.create());
      const box = pkcs7.createEnvelopedData(); box.addRecipient(cert); box.content = util.createBuffer('4242424242424242'); box.encrypt();
      const opened = pkcs7.messageFromPem(pkcs7.messageToPem(box)); opened.decrypt(opened.findRecipient(cert), privateKey);
      const signed = pkcs7.createSignedData(); signed.content = util.createBuffer('payload', 'utf8'); signed.addCertificate(cert);
      signed.addSigner({ key: privateKey, certificate: cert, digestAlgorithm: pki.oids.sha256, authenticatedAttributes: [
        { type: pki.oids.contentType, value: pki.oids.data }, { type: pki.oids.messageDigest }, { type: pki.oids.signingTime, value: new Date('2023-02-01') }] });
      signed.sign();
      return [pki.certificateToPem(cert), opened.content.getBytes(), pkcs7.messageToPem(signed).split('\\r\\n')[0]];`;
    const [certificate, ...rest] = (await inside(body)) as [string, string, string];
    const read = new X509Certificate(certificate);
    expect(read.subject).to.equal('CN=Acme');
    expect(read.verify(createPublicKey(keys.rsaPublic))).to.equal(true);
    expect(rest).to.deep.equal(['4242424242424242', '-----BEGIN PKCS7-----']);
  });

  it('openpgp encrypts, decrypts and signs', async () => {
    const body = `const openpgp = require('openpgp');
      const { privateKey, publicKey } = await openpgp.generateKey({ userIDs: [{ name: 'a', email: 'a@example.com' }], format: 'object' });
      const armored = await openpgp.encrypt({ message: await openpgp.createMessage({ text: '4242' }), encryptionKeys: publicKey, signingKeys: privateKey });
      const opened = await openpgp.decrypt({ message: await openpgp.readMessage({ armoredMessage: armored }), decryptionKeys: privateKey, verificationKeys: publicKey });
      const locked = await openpgp.encrypt({ message: await openpgp.createMessage({ binary: new Uint8Array([1, 2, 3]) }), passwords: 'p', format: 'binary' });
      const unlocked = await openpgp.decrypt({ message: await openpgp.readMessage({ binaryMessage: locked }), passwords: 'p', format: 'binary' });
      const wrong = await openpgp.decrypt({ message: await openpgp.readMessage({ binaryMessage: locked }), passwords: 'q' }).catch((error) => error.constructor.name);
      const zipped = await openpgp.encrypt({ message: await openpgp.createMessage({ text: 'z'.repeat(5000) }), passwords: 'p', config: { preferredCompressionAlgorithm: openpgp.enums.compression.zlib } });
      const unzipped = await openpgp.decrypt({ message: await openpgp.readMessage({ armoredMessage: zipped }), passwords: 'p' });
      if (zipped.length > 2000 || unzipped.data !== 'z'.repeat(5000)) return 'compression does not work';
      return [armored.split('\\n')[0], opened.data, await opened.signatures[0].verified, [...unlocked.data], wrong];`;
    expect(await inside(body)).to.deep.equal([
      ...['-----BEGIN PGP MESSAGE-----', '4242', true, [1, 2, 3], 'Error'],
    ]);
  });
});
