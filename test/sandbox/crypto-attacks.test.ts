/** Scripts that turn `crypto` against the host: costs, kinds, and what is left behind. */
import { expect } from 'chai';
import { besideNeighbour, type Sandbox, startSandbox } from '../support/sandbox.ts';

/** Runs `attempts` one by one; the name and code of what each throws, or its value. */
const trying = (attempts: readonly string[]): string => `module.exports = async () => {
  const crypto = require('crypto');
  const told = [];
  for (const attempt of [${attempts.map((attempt) => `async () => ${attempt}`).join(',\n')}]) {
    try {
      told.push(['value', await attempt()]);
    } catch (error) {
      told.push([error.name, error.code, error.message, error.stack]);
    }
  }
  return told;
};`;

describe('crypto against the host', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  const told = async (attempts: readonly string[]): Promise<[string, ...unknown[]][]> =>
    (await sandbox.value(trying(attempts))) as [string, ...unknown[]][];

  it('refuses what would cost too much, while a neighbour is served', async () => {
    const attempts = [
      "crypto.pbkdf2Sync('p', 's', 2 ** 31 - 1, 32, 'sha512')",
      "crypto.pbkdf2Sync('p', 's', 1, 2 ** 30, 'sha1')",
      "crypto.scryptSync('p', 's', 32, { N: 2 ** 20, r: 8, p: 1, maxmem: 2 ** 40 })",
      "crypto.scryptSync('p', 's', 32, { N: 2, r: 1, p: 2 ** 24, maxmem: 2 ** 40 })",
      "crypto.generateKeyPairSync('rsa', { modulusLength: 65536 })",
      "crypto.generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 2 ** 31 - 1 })",
      "crypto.generateKeyPairSync('dh', { primeLength: 8192 })",
      "crypto.generateKeyPairSync('dsa', { modulusLength: 8192 })",
      'crypto.randomBytes(2 ** 31 - 1)',
      "crypto.createHash('shake256', { outputLength: 2 ** 31 - 1 }).digest()",
      "crypto.createHash('sha256').update('x'.repeat(2 ** 25)).digest()",
      "crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-512', salt: new Uint8Array(1), iterations: 2 ** 31 - 1 }, await crypto.subtle.importKey('raw', new Uint8Array(1), 'PBKDF2', false, ['deriveBits']), 256)",
    ];
    const results = await besideNeighbour(sandbox, () => told(attempts));
    for (const [index, [kind]] of results.entries()) {
      expect(kind, attempts[index]).to.match(/Error$/);
    }
  });

  it('has nothing that reads a file, loads an engine or keeps state of the process', async () => {
    const [[, names] = []] = await told(['Object.keys(crypto)']);
    for (const name of [
      'setEngine',
      'setFips',
      'secureHeapUsed',
      'createDiffieHellman',
      'Certificate',
    ]) {
      expect(names).to.not.include(name);
    }
    const results = await told([
      "crypto.createPrivateKey('/etc/ssl/private/ssl-cert-snakeoil.key')",
      "crypto.createPrivateKey(new URL('file:///etc/passwd'))",
      "crypto.createPrivateKey({ key: 'file:///etc/passwd', format: 'pem' })",
      "crypto.createPrivateKey({ key: 'x', format: 'pem', type: '../../etc/passwd' })",
    ]);
    for (const [kind, , message] of results) {
      expect(kind).to.match(/Error$/);
      expect(message).to.not.include('etc');
    }
  });

  it('throws errors of the script alone: no path and no place of the host in them', async () => {
    const results = await told([
      "crypto.createCipheriv('aes-256-cbc', 'short', 'short')",
      "crypto.createPrivateKey('x')",
      "crypto.pbkdf2Sync('p', 's', 'many', 32, 'sha256')",
      "crypto.createHash('sha256').update({ toString() { return 'x'; } })",
      "crypto.sign('sha256', Buffer.alloc(1), { get key() { throw new RangeError('mine'); } })",
      "crypto.subtle.decrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, await crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM', false, ['decrypt']), new Uint8Array(40))",
    ]);
    for (const [kind, , , stack] of results) {
      expect(kind).to.match(/Error$/);
      expect(stack).to.not.match(/node:|file:|\/shared\/|answer-crypto/);
    }
    const constructors = await told([
      "(() => { try { crypto.createPrivateKey('x'); } catch (error) { return error instanceof Error && error.constructor.constructor('return typeof process.binding')(); } })()",
    ]);
    expect(constructors[0]).to.deep.equal(['value', 'undefined']);
  });

  it('keeps its bounds when the script changes what it computes with', async () => {
    const source = `const crypto = require('crypto'); crypto.createHash('sha256').update('x').digest();
      JSON.stringify = () => '[[[1e9,"utf8"]],"sha256",null]'; String.fromCharCode = () => '\\u{10ffff}';
      Array.prototype.map = () => [2 ** 40]; Object.prototype.toJSON = () => ({ length: -1 });
      Array.prototype.toJSON = () => 5; String.prototype.indexOf = () => -5;
      module.exports = () => { const told = [];
        for (const attempt of [() => crypto.createHash('sha256').update(Buffer.from('ab')).digest('hex'),
          () => crypto.randomBytes(3), () => crypto.createPrivateKey('x'), () => crypto.getCiphers()]) {
          try { attempt(); told.push('value'); } catch { told.push('error'); } }
        return 'alive'; };`;
    const ended = await besideNeighbour(sandbox, () => sandbox.result(source));
    expect(ended.kind).to.be.oneOf(['ok', 'error']);
    expect(
      await sandbox.value("module.exports = () => require('crypto').randomBytes(3).length;"),
    ).to.equal(3);
  });

  it('does not let a run go on that never leaves its operations', async () => {
    const source = `const { pbkdf2Sync } = require('crypto');
      module.exports = () => { for (;;) pbkdf2Sync('p', 's', 50_000, 32, 'sha512'); };`;
    const hosts = sandbox.supervisor.status().pids;
    const ended = await besideNeighbour(sandbox, () =>
      sandbox.result(source, { deadline_ms: 2_000 }),
    );
    expect(ended.kind).to.equal('timeout');
    // Ended inside: no host had to be killed for it.
    expect(sandbox.supervisor.status().pids).to.deep.equal(hosts);
  });

  it('does not let a run go on that catches everything around its operations', async () => {
    const source = `module.exports = () => {
      for (;;) { try { for (;;) new URL('https://a.example'); } catch {} finally { continue; } } };`;
    const hosts = sandbox.supervisor.status().pids;
    const ended = await besideNeighbour(sandbox, () =>
      sandbox.result(source, { deadline_ms: 1_000 }),
    );
    expect(ended.kind).to.equal('timeout');
    expect(sandbox.supervisor.status().pids).to.deep.equal(hosts);
  });

  it('does not show one run what another one had', async () => {
    const keep = `const crypto = require('crypto'); let kept;
      module.exports = () => { const before = kept; kept = crypto.createHash('sha256').update('a'); return before === undefined; };`;
    const request = { script_version: 'kept' };
    expect(await sandbox.value(keep, request)).to.equal(true);
    expect(await sandbox.value(keep, request)).to.equal(true);
  });

  it('costs a context nothing until it is used', async () => {
    const source = `module.exports = () => [
      Object.getOwnPropertyDescriptor(globalThis, 'crypto').get !== undefined,
      typeof crypto.subtle, Object.getOwnPropertyDescriptor(globalThis, 'crypto').get === undefined];`;
    expect(await sandbox.value(source)).to.deep.equal([true, 'object', true]);
  });
});
