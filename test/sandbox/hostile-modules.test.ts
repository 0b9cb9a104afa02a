/** Data that blows up in the modules scripts may use, and prototypes changed through them. */
import { expect } from 'chai';
import { ScriptCallError } from '../../shared/sandbox/script-services.ts';
import { besideNeighbour, fakeService, type Sandbox, startSandbox } from '../support/sandbox.ts';

const STOPPED = ['timeout', 'memory', 'crashed', 'error'];
const ANY = [...STOPPED, 'ok'];

/** [what, body, how it may end]. */
const BOMBS: readonly [string, string, readonly string[]][] = [
  [
    'fast-xml-parser gets a billion laughs',
    `const { XMLParser } = require('fast-xml-parser');
    let d = '<!DOCTYPE l [<!ENTITY a0 "lol">'; for (let i = 1; i < 10; i++) d += '<!ENTITY a' + i + ' "' + ('&a' + (i - 1) + ';').repeat(10) + '">';
    return JSON.stringify(new XMLParser({ processEntities: true }).parse(d + ']><l>&a9;</l>')).length < 1e5;`,
    ['ok', 'error'],
  ],
  [
    'fast-xml-parser gets 100,000 open tags',
    "const { XMLParser } = require('fast-xml-parser'); new XMLParser().parse('<a>'.repeat(1e5));",
    ['error'],
  ],
  [
    'xmlbuilder2 gets 100,000 open tags',
    "require('xmlbuilder2').create('<a>'.repeat(1e5)).end();",
    STOPPED,
  ],
  [
    'xmlbuilder2 gets an entity of a file',
    `return require('xmlbuilder2').create('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>').end().includes('root:');`,
    ['ok', 'error'],
  ],
  [
    'csv-parse gets three million columns',
    "return require('csv-parse/sync').parse(','.repeat(3e6)).length;",
    ANY,
  ],
  [
    'csv-parse gets a quote that never closes',
    "return require('csv-parse/sync').parse('\"' + 'a,'.repeat(2e6)).length;",
    ANY,
  ],
  [
    'yup gets a catastrophic pattern',
    "return require('yup').string().matches(/^(a+)+$/).isValid('a'.repeat(40) + 'b');",
    ['timeout'],
  ],
  [
    'yup gets a URL to search in for long',
    "return require('yup').string().url().isValid('http://' + 'a.'.repeat(1e5) + '!');",
    ANY,
  ],
  [
    'yup gets a schema within itself',
    "const y = require('yup'); const s = y.lazy(() => y.object({ s })); return s.isValid({ get s() { return this; } });",
    STOPPED,
  ],
  [
    'lodash gets a million paths',
    "const _ = require('lodash'); return _.set({}, Array(1e6).fill('a'), 1) && _.cloneDeep(_.set({}, Array(1e5).fill('a'), 1));",
    ANY,
  ],
  [
    'lodash gets a text to trim that it searches for long',
    "return require('lodash').trim(' '.repeat(1e6) + 'a' + ' '.repeat(1e6)).length;",
    ANY,
  ],
  [
    'jsonpath gets a path that multiplies',
    "const o = {}; let c = o; for (let i = 0; i < 500; i++) c = c.a = {}; return require('jsonpath').query(o, '$' + '..*'.repeat(4)).length;",
    ANY,
  ],
  [
    'json-stable-stringify gets 100,000 levels',
    "const a = []; let c = a; for (let i = 0; i < 1e5; i++) c = c[0] = []; require('json-stable-stringify')(a);",
    ['error'],
  ],
  [
    'openpgp gets 5 MB in 5 kB',
    `const o = require('openpgp'); const message = await o.createMessage({ text: 'a'.repeat(5e6) });
    const config = { preferredCompressionAlgorithm: o.enums.compression.zip };
    const sealed = await o.encrypt({ message, passwords: ['x'], format: 'binary', config });
    const opened = await o.decrypt({ message: await o.readMessage({ binaryMessage: sealed }), passwords: ['x'] }); return opened.data.length;`,
    ANY,
  ],
  [
    'openpgp stretches a password for long',
    `const o = require('openpgp'); const message = await o.createMessage({ text: 'a' });
    await o.encrypt({ message, passwords: ['x'], config: { s2kIterationCountByte: 255 } });`,
    STOPPED,
  ],
  [
    'pdf-lib makes pages without end',
    "const d = await require('pdf-lib').PDFDocument.create(); for (;;) d.addPage();",
    STOPPED,
  ],
  [
    'pdf-lib gets objects without end',
    "await require('pdf-lib').PDFDocument.load('%PDF-1.7\\n' + '1 0 obj\\n<<'.repeat(2e5));",
    STOPPED,
  ],
  [
    'node-forge gets 100,000 levels of ASN.1',
    "const f = require('node-forge'); f.asn1.fromDer(f.util.createBuffer('\\x30\\x80'.repeat(1e5)));",
    ['error'],
  ],
  [
    'node-forge makes a key of 16,384 bits',
    "require('node-forge').pki.rsa.generateKeyPair(16384);",
    STOPPED,
  ],
  [
    'node-forge derives a key for ever',
    "require('node-forge').pkcs5.pbkdf2('a', 'b', 1e9, 64);",
    STOPPED,
  ],
  [
    'crypto-js derives a key for ever',
    "require('crypto-js').PBKDF2('a', 'b', { keySize: 99, iterations: 1e9 });",
    ['timeout'],
  ],
  [
    'jsonwebtoken gets a token of 5 MB',
    "require('jsonwebtoken').verify('a.'.repeat(2.5e6), 'secret');",
    ['error'],
  ],
  [
    'jose unpacks what was packed',
    "return require('jose').decodeJwt('a.' + 'e'.repeat(5e6) + '.c');",
    ['error'],
  ],
  [
    'luxon gets comments in comments',
    "return require('luxon').DateTime.fromRFC2822('('.repeat(6e4) + '(a)').isValid;",
    ANY,
  ],
  ['dayjs gets a million digits', "return require('dayjs')('9'.repeat(1e6)).isValid();", ANY],
  [
    'querystring gets a million pairs',
    "return Object.keys(require('querystring').parse('a=&'.repeat(1e6))).length;",
    ANY,
  ],
  [
    'stream pipes into itself',
    "const { PassThrough } = require('stream'); const p = new PassThrough(); p.pipe(p); p.write('a'); await new Promise(() => {});",
    STOPPED,
  ],
  [
    'p-limit gets a million waiting',
    "const l = require('p-limit')(1); await Promise.all(Array.from({ length: 1e6 }, () => l(() => new Promise(() => {}))));",
    STOPPED,
  ],
  [
    'Buffer is asked for all there is',
    'const kept = []; for (;;) kept.push(Buffer.alloc(1e8, 1));',
    STOPPED,
  ],
];

/** Each tries to leave members on the prototypes of its own world by data alone. */
const POLLUTERS: readonly [string, string][] = [
  [
    'lodash merge, set and defaultsDeep',
    `const _ = require('lodash'); const data = JSON.parse('{"__proto__":{"p":1},"constructor":{"prototype":{"p":1}}}');
    _.merge({}, data); _.defaultsDeep({}, data); _.set({}, '__proto__.p', 1); _.set({}, 'constructor.prototype.p', 1); _.zipObjectDeep(['__proto__.p'], [1]);`,
  ],
  [
    'fast-xml-parser',
    "new (require('fast-xml-parser').XMLParser)({ ignoreAttributes: false }).parse('<__proto__ p=\"1\"><p>1</p></__proto__>');",
  ],
  [
    'xmlbuilder2',
    "require('xmlbuilder2').convert('<__proto__><p>1</p></__proto__>', { format: 'object' });",
  ],
  ['csv-parse', "require('csv-parse/sync').parse('__proto__,p\\n1,2', { columns: true });"],
  [
    'querystring',
    "require('querystring').parse('__proto__=1&__proto__[p]=1&constructor.prototype.p=1');",
  ],
  [
    'snakecase-keys',
    'require(\'snakecase-keys\')(JSON.parse(\'{"__proto__":{"p":1}}\'), { deep: true });',
  ],
  ['jsonpath', "require('jsonpath').value({}, '$.__proto__.p', 1);"],
  ['structuredClone', 'structuredClone(JSON.parse(\'{"__proto__":{"p":1}}\'));'],
  [
    'node-forge',
    "require('node-forge').util.makeLink?.('/', 'a', JSON.parse('{\"__proto__\":{\"p\":1}}'));",
  ],
  [
    'yup',
    "require('yup').object({ a: require('yup').mixed() }).cast(JSON.parse('{\"__proto__\":{\"p\":1}}'));",
  ],
];

describe('a module that gets hostile data', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  for (const [index, [what, body, kinds]] of BOMBS.entries()) {
    it(`harms its own run at most: ${what}`, async () => {
      const source = `module.exports = async () => { ${body} };`;
      // Each of a tenant of its own: none is in quarantine for what another did.
      const run = { tenant_id: `tenant ${index}`, deadline_ms: 1_500 };
      const ended = await besideNeighbour(sandbox, () => sandbox.result(source, run));
      expect(ended.kind).to.be.oneOf([...kinds]);
      if (ended.kind === 'ok') expect(ended.value.length).to.be.below(100);
      expect(ended.kind === 'ok' && ended.value).not.to.equal('"root"');
    });
  }

  for (const [what, body] of POLLUTERS) {
    it(`changes no prototype: ${what}`, async () => {
      const source = `module.exports = async () => { let failed = false; try { ${body} } catch { failed = true; }
        return [({}).p === undefined, [].p === undefined, typeof failed]; };`;
      const value = await besideNeighbour(sandbox, () => sandbox.value(source));
      expect(value).to.deep.equal([true, true, 'boolean']);
    });
  }

  it('runs no text as code that sees more than the script', async () => {
    const source = `module.exports = () => require('lodash').template(
      '<%= typeof process.binding + typeof native + typeof internal + typeof require %>')();`;
    expect(await sandbox.value(source)).to.equal('undefinedundefinedundefinedundefined');
  });

  it('can be told any host, and every one of them is for the gateway to judge', async () => {
    const asked: string[] = [];
    const fetch = fakeService((request) => {
      asked.push(JSON.parse(request.split('\n', 1)[0] ?? '').url);
      return Promise.reject(new ScriptCallError('Refused.', 'ERR_REFUSED'));
    });
    const source = `module.exports = async () => {
      const tries = [
        () => require('stripe')('sk', { host: '169.254.169.254', port: 80, protocol: 'http', maxNetworkRetries: 0 }).charges.list(),
        () => require('axios').get('http://[::1]:1/', { proxy: { host: '127.0.0.1', port: 1 } }),
        () => require('axios').get('/x', { baseURL: 'http://127.0.0.1', socketPath: '/var/run/x.sock' }),
        () => new Promise((_r, no) => require('http').get({ host: 'localhost', socketPath: '/x' }, no).on('error', no)),
      ];
      let failed = 0;
      for (const one of tries) { try { await one(); } catch { failed++; } }
      return failed; };`;
    const run = { services: { fetch: fetch.run } };
    const value = await besideNeighbour(sandbox, () => sandbox.value(source, run));
    expect(value).to.equal(4);
    expect(asked).not.to.have.length(0);
    for (const url of asked)
      expect(new URL(url).hostname).to.match(
        /^(169\.254\.169\.254|\[::1\]|127\.0\.0\.1|localhost)$/,
      );
  });
});
