import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import {
  childEnvironment,
  describeEnvironment,
  readEnvironment,
} from '../../../config/environment.ts';
import { EnvironmentError } from '../../../config/read-variable.ts';
import { generateApiKey } from '../../../shared/api-keys.ts';

const KEK = Buffer.alloc(32, 7).toString('base64');

describe('readEnvironment', () => {
  it('has a default for everything that needs one', () => {
    expect(readEnvironment({})).to.deep.include({
      port: 3000,
      listenHost: undefined,
      controlPlanePort: 3001,
      metricsPort: undefined,
      metricsHost: undefined,
      trustedProxyHops: 0,
      dataDir: resolve('.sallyport'),
      databaseUrl: undefined,
      databasePoolMax: 20,
      redisUrl: undefined,
      kek: undefined,
      bootstrapKey: undefined,
      egressAllow: [],
      egressCaFile: undefined,
      sandboxHosts: undefined,
      sandboxThreads: 4,
      sandboxReuse: 'invocation',
      sandboxStrict: false,
      logLevel: 'info',
    });
  });

  it('reads given values, and takes an empty one as unset', () => {
    const environment = readEnvironment({
      PORT: '0',
      DATABASE_URL: 'postgres://role:secret@localhost/db?host=%2Ftmp',
      REDIS_URL: '',
      SALLYPORT_KEK: KEK,
    });
    expect(environment.port).to.equal(0);
    expect(environment.databaseUrl).to.equal('postgres://role:secret@localhost/db?host=%2Ftmp');
    expect(environment.redisUrl).to.equal(undefined);
    expect(environment.kek).to.equal(KEK);
  });

  it('reads the ranges that may be reached, and hands them down unchanged', () => {
    const environment = readEnvironment({ SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8, fd12::/16' });
    expect(environment.egressAllow).to.deep.equal([
      { family: 4, bits: 0x7f00_0000n, prefix: 8 },
      { family: 6, bits: 0xfd12n << 112n, prefix: 16 },
    ]);
    expect(readEnvironment(childEnvironment({}, environment))).to.deep.equal(environment);
  });

  it('accepts a database URL without a host, as libpq does', () => {
    const url = 'postgres://role:secret@/db?host=/tmp';
    expect(readEnvironment({ DATABASE_URL: url }).databaseUrl).to.equal(url);
  });

  const bad: Record<string, string[]> = {
    PORT: ['65536', '-1', '80 ', '0x50', '3000.5', '1e3', 'http', '٣٠٠٠'],
    LISTEN_HOST: ['localhost', '127.0.0.1:3000'],
    METRICS_HOST: ['localhost', '127.0.0', '127.0.0.1:9090', '[::1]', '*', 'secret'],
    TRUSTED_PROXY_HOPS: ['-1', '17', 'all'],
    DATABASE_POOL_MAX: ['0', '1', '1001', '16;'],
    DATABASE_URL: ['mysql://secret@h/db', 'secret', 'postgres:secret', 'host=secret'],
    REDIS_URL: ['http://secret@h', 'localhost:6379'],
    SALLYPORT_KEK: [`${KEK.slice(0, -2)}==`, KEK.slice(1), 'secret', `${KEK}${KEK}`],
    SALLYPORT_BOOTSTRAP_KEY: ['key_secret', 'secret', `${generateApiKey()}1`],
    SALLYPORT_EGRESS_ALLOW: ['10.0.0.1/8', '10.0.0.0/33', 'localhost', 'secret', '10.0.0.0/8,'],
    SANDBOX_HOSTS: ['-1', '65', 'half', '1.5'],
    SANDBOX_THREADS: ['0', '33', 'all'],
    SALLYPORT_SANDBOX_REUSE: ['context', 'Reactor', 'true'],
    SALLYPORT_SANDBOX_STRICT: ['1', 'yes', 'TRUE', 'on'],
    LOG_LEVEL: ['INFO', 'verbose'],
  };
  for (const [name, values] of Object.entries(bad)) {
    it(`refuses a bad ${name}, naming it and not its value`, () => {
      for (const value of values) {
        const message = failureOf({ [name]: value });
        expect(message).to.match(new RegExp(`^${name} must be `));
        expect(message).not.to.contain('\n');
        expect(message).not.to.contain('secret');
        if (value.length > 4) expect(message).not.to.contain(value);
      }
    });
  }

  const meant: [string, string][] = [
    ['127.0.0.1/8', '127.0.0.0/8'],
    ['10.0.0.0/8, 192.168.7.9/24', '192.168.7.0/24'],
    ['fd12::1/16', 'fd12:0:0:0:0:0:0:0/16'],
  ];
  for (const [given, range] of meant) {
    it(`says that ${given} has bits behind its prefix, and which range is probably meant`, () => {
      expect(failureOf({ SALLYPORT_EGRESS_ALLOW: given })).to.match(
        new RegExp(`\\(the bits behind a prefix must be 0, is ${range} meant\\?\\)$`),
      );
    });
  }

  it('refuses a SALLYPORT_ variable it does not know, such as a misspelt one', () => {
    expect(failureOf({ SALLYPORT_KEKS: 'secret' })).to.match(
      /^SALLYPORT_KEKS is not a setting of Sallyport: is it SALLYPORT_KEK\?$/,
    );
    expect(failureOf({ SALLYPORT_BOTSTRAP_KEY_FIEL: 'secret' })).to.match(/--help/);
    expect(failureOf({ SALLYPORT_BOTSTRAP_KEY: 'secret' })).to.contain(
      'is it SALLYPORT_BOOTSTRAP_KEY',
    );
    expect(failureOf({ SALLYPORT_UNHEARD_OF: 'secret' })).to.contain('--help');
  });

  it('lets pass what Kubernetes sets for a Service named sallyport', () => {
    readEnvironment({
      SALLYPORT_SERVICE_HOST: '10.0.0.1',
      SALLYPORT_SERVICE_PORT: '3000',
      SALLYPORT_SERVICE_PORT_HTTP: '3000',
      SALLYPORT_PORT: 'tcp://10.0.0.1:3000',
      SALLYPORT_PORT_3000_TCP: 'tcp://10.0.0.1:3000',
      SALLYPORT_PORT_3000_TCP_ADDR: '10.0.0.1',
      SALLYPORT_METRICS_SERVICE_HOST: '10.0.0.2',
    });
  });

  it('refuses a setting with the prefix that it does not have, and names it without', () => {
    expect(failureOf({ SALLYPORT_PORT: '4300' })).to.contain('is it PORT?');
    expect(failureOf({ SALLYPORT_METRICS_PORT: '1' })).to.contain('is it METRICS_PORT?');
    expect(failureOf({ SALLYPORT_DATA_DIR: '/a' })).to.contain('is it DATA_DIR?');
  });

  it('tells all that is wrong at once', () => {
    const source = {
      ...{ SANDBOX_HOSTS: 'x', DATABASE_POOL_MAX: '1', TLS_CERT_FILE: '/a' },
      ...{ SALLYPORT_KEKS: 'secret', SALLYPORT_SANDBOX: '2', SALLYPORT_KEK_FILE: '/nowhere/kek' },
    };
    const told = failureOf(source).split('; ');
    expect(told.map((problem) => problem.split(' ')[0])).to.have.members(Object.keys(source));
    expect(told.join()).not.to.contain('secret');
  });

  it('refuses half a TLS pair', () => {
    expect(failureOf({ TLS_CERT_FILE: '/a' })).to.contain('TLS_KEY_FILE');
    expect(failureOf({ TLS_KEY_FILE: '/a' })).to.contain('TLS_CERT_FILE');
  });

  it('refuses a clock offset outside of tests', () => {
    const offset = { SALLYPORT_TEST_CLOCK_OFFSET: '-3600' };
    expect(failureOf(offset)).to.contain('SALLYPORT_TEST_CLOCK_OFFSET');
    expect(failureOf({ ...offset, NODE_ENV: 'production' })).to.contain('NODE_ENV');
    expect(readEnvironment({ ...offset, NODE_ENV: 'test' }).testClockOffsetSeconds).to.equal(-3600);
  });
});

describe('the _FILE twin of a secret', () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'sallyport-environment-'));
  });
  after(() => rmSync(directory, { recursive: true }));

  it('is read without its last line break', () => {
    const file = join(directory, 'kek');
    writeFileSync(file, `${KEK}\n`);
    expect(readEnvironment({ SALLYPORT_KEK_FILE: file }).kek).to.equal(KEK);
  });

  it('names itself, not the content, when it is missing, empty or wrong', () => {
    const missing = failureOf({ SALLYPORT_KEK_FILE: join(directory, 'missing') });
    expect(missing).to.match(/^SALLYPORT_KEK_FILE .*ENOENT/);
    const empty = join(directory, 'empty');
    writeFileSync(empty, '\n');
    expect(failureOf({ DATABASE_URL_FILE: empty })).to.contain('DATABASE_URL_FILE');
    const wrong = join(directory, 'wrong');
    writeFileSync(wrong, 'a secret that is no key');
    expect(failureOf({ SALLYPORT_BOOTSTRAP_KEY_FILE: wrong })).not.to.contain('a secret');
  });

  it('gives way to nothing: both at once are refused', () => {
    expect(failureOf({ SALLYPORT_KEK: KEK, SALLYPORT_KEK_FILE: '/x' })).to.contain('not both');
  });

  it('exists for secrets only', () => {
    expect(readEnvironment({ PORT_FILE: '/nowhere' }).port).to.equal(3000);
  });
});

describe('childEnvironment', () => {
  it('hands down what was inherited and exactly the given settings', () => {
    const source = {
      PATH: '/bin',
      NODE_ENV: 'test',
      PORT: '3000',
      SALLYPORT_BOOTSTRAP_KEY: 'inherited',
      SALLYPORT_KEK_FILE: '/kek',
    };
    const settings = readEnvironment({
      PORT: '4000',
      SALLYPORT_KEK: KEK,
      NODE_ENV: 'test',
      SALLYPORT_TEST_CLOCK_OFFSET: '60',
      SANDBOX_HOSTS: '3',
      SANDBOX_THREADS: '2',
      SALLYPORT_SANDBOX_REUSE: 'reactor',
      SALLYPORT_SANDBOX_STRICT: 'true',
    });
    expect(settings).to.deep.include({ sandboxHosts: 3, sandboxThreads: 2, sandboxStrict: true });
    const child = childEnvironment(source, settings);
    expect(child).to.deep.include({ PATH: '/bin', PORT: '4000', SALLYPORT_KEK: KEK });
    expect(child).not.to.have.any.keys('SALLYPORT_BOOTSTRAP_KEY', 'SALLYPORT_KEK_FILE');
    expect(readEnvironment(child)).to.deep.equal(settings);
  });
});

describe('describeEnvironment', () => {
  it('has one row per variable, with a text that says more than the name', () => {
    const rows = describeEnvironment();
    expect(rows.map((row) => row.name)).to.include.members(['PORT', 'SALLYPORT_KEK, …_FILE']);
    for (const row of rows) expect(row.text.length).to.be.greaterThan(20);
  });
});

/** The one line that a start with these variables would end with. */
function failureOf(source: NodeJS.ProcessEnv): string {
  try {
    readEnvironment(source);
  } catch (error) {
    expect(error).to.be.instanceOf(EnvironmentError);
    return (error as EnvironmentError).message;
  }
  throw new Error('the environment was accepted');
}
