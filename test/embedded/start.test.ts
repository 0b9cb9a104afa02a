import { execFile } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { generateApiKey } from '../../shared/api-keys.ts';
import { call } from '../support/http-call.ts';
import { type Program, startProgram } from '../support/start-program.ts';

const run = promisify(execFile);
const READY = /^Sallyport is ready at (http:\/\/localhost:[0-9]+)$/m;
const ELSEWHERE = /^Sallyport is ready at (http:\/\/127\.0\.0\.2:[0-9]+)$/m;
const KEY = /^ {4}(key_[1-9A-HJ-NP-Za-km-z]+)$/m;
const ANY_PORT = { PORT: '0', CONTROL_PLANE_PORT: '0', METRICS_PORT: '0', LOG_LEVEL: 'debug' };

describe('npm start', function () {
  // Several whole installations, on machines that may be slow or busy.
  this.timeout(120_000);
  let root: string;
  let dataDir: string;
  let program: Program | undefined;

  beforeEach(async () => {
    root = await fs.mkdtemp(join(tmpdir(), 'sallyport-start-'));
    await fs.chmod(root, 0o700);
    dataDir = join(root, 'clone', '.sallyport');
  });
  afterEach(async () => {
    await stop();
    await fs.rm(root, { recursive: true });
  });

  function start(settings: NodeJS.ProcessEnv = {}): Program {
    program = startProgram('embedded/start.ts', [], {
      ...ANY_PORT,
      DATA_DIR: dataDir,
      ...settings,
    });
    return program;
  }

  async function stop(): Promise<void> {
    program?.child.kill('SIGTERM');
    await program?.finished;
    program = undefined;
  }

  /** The address and the metrics port of a start that is ready. */
  async function ready(started: Program): Promise<{ baseUrl: string; metricsUrl: string }> {
    const baseUrl = (await started.says(READY))[1] ?? '';
    return { baseUrl, metricsUrl: metricsUrlOf(started) };
  }

  function metricsUrlOf(started: Program): string {
    const [, port] = /"port":([0-9]+),"msg":"metrics"/.exec(started.stderr()) ?? [];
    return `http://localhost:${port}`;
  }

  it('shows a key once, and three commands that work when copied', async () => {
    // As an operator's shell has it: the code is compiled into DATA_DIR.
    const first = start({ NODE_COMPILE_CACHE: undefined });
    await first.says(READY);
    expect(await fs.readdir(join(dataDir, 'compile-cache'))).to.have.length.above(0);
    const text = first.stdout();
    expect(text.trimEnd().split('\n').at(-1)).to.match(READY);
    expect(text).to.match(KEY).and.contain(join(dataDir, 'kek'));

    const commands = text.slice(text.indexOf('# 1.'), text.search(READY));
    const { stdout } = await run('/bin/sh', ['-euc', commands]);
    const [made = '', masked = '', clear = ''] = stdout.split('\n');
    expect(JSON.parse(made)).to.include({ name: 'First steps', type: 'private' });
    expect(JSON.parse(masked).data.number).to.equal('XXXXXXXXXXXX4242');
    expect(JSON.parse(clear).data.number).to.equal('4242424242424242');
    await stop();

    const second = start();
    const { baseUrl } = await ready(second);
    expect(second.stdout()).to.equal(`Sallyport is ready at ${baseUrl}\n`);
    const key = KEY.exec(text)?.[1] ?? '';
    expect((await call(baseUrl, 'GET /tenants/self', { key })).status).to.equal(200);
    await stop();
    const files = await fs.readdir(dataDir);
    expect(files).not.to.include('lock');
    for (const name of ['kek', 'postgres-password']) {
      expect((await fs.stat(join(dataDir, name))).mode & 0o777, name).to.equal(0o600);
    }
    const [key64, written] = [await fs.readFile(join(dataDir, 'kek'), 'utf8'), first.stderr()];
    expect(written).not.to.contain(key64.trim()).and.not.contain(key);
  });

  it('takes the key of SALLYPORT_BOOTSTRAP_KEY and does not show it', async () => {
    const key = generateApiKey();
    const compiled = join(root, 'compiled');
    const started = start({ SALLYPORT_BOOTSTRAP_KEY: key, NODE_COMPILE_CACHE: compiled });
    const { baseUrl } = await ready(started);
    expect(await fs.readdir(dataDir)).not.to.include('compile-cache');
    expect(started.stdout()).to.contain('$SALLYPORT_BOOTSTRAP_KEY');
    expect(started.stdout()).to.match(/^SALLYPORT_BOOTSTRAP_KEY=…/m);
    expect(started.stdout() + started.stderr()).not.to.contain(key);
    const { status } = await call(baseUrl, 'GET /tenants/self', { key });
    expect(status).to.equal(200);
    expect(started.stderr()).not.to.contain('has no effect');
    await stop();
    const again = start({ SALLYPORT_BOOTSTRAP_KEY: generateApiKey() });
    await ready(again);
    expect(again.stderr()).to.contain('SALLYPORT_BOOTSTRAP_KEY has no effect');
  });

  it('answers for all processes on one port, and ends with 0 on SIGTERM', async () => {
    const started = start({ METRICS_HOST: '127.0.0.1', LISTEN_HOST: '127.0.0.2' });
    const [, baseUrl = ''] = await started.says(ELSEWHERE);
    expect((await call(baseUrl, 'GET /openapi.json')).status).to.equal(200);
    const metricsUrl = metricsUrlOf(started);
    for (const url of [
      `${metricsUrl.replace('localhost', '127.0.0.2')}/healthz`,
      `${baseUrl.replace('127.0.0.2', '127.0.0.1')}/openapi.json`,
    ]) {
      expect(await fetch(url).catch(() => 'refused'), url).to.equal('refused');
    }
    const readiness = await call(metricsUrl, 'GET /readyz');
    const { sandbox, ...rest } = readiness.body;
    expect([readiness.status, rest]).to.deep.equal([200, { ready: true, problems: [] }]);
    expect(sandbox).to.have.all.keys('network', 'hosts');
    expect((await call(metricsUrl, 'GET /healthz')).body).to.deep.equal({ alive: true });
    const metrics = await (await fetch(`${metricsUrl}/metrics`)).text();
    expect(metrics).to.contain('sallyport_build_info{').and.contain('process_cpu_seconds_total');
    expect((await fetch(`${metricsUrl}/tokens`)).status).to.equal(404);
    expect((await fetch(`${metricsUrl}/metrics`, { method: 'POST' })).status).to.equal(405);

    started.child.kill('SIGTERM');
    const { code, signal } = await started.finished;
    expect([code, signal]).to.deep.equal([0, null]);
  });

  it('brings back planes, jobs and a database that were killed', async () => {
    const key = generateApiKey();
    const started = start({ SALLYPORT_BOOTSTRAP_KEY: key });
    const { baseUrl, metricsUrl } = await ready(started);
    const killed = await childrenOf(started.child.pid);
    expect(killed).to.have.length(4);
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    await eventually(async () => {
      const { status } = await call(metricsUrl, 'GET /readyz');
      return (
        status === 200 && (await childrenOf(started.child.pid)).every((p) => !killed.includes(p))
      );
    });
    const { status } = await call(baseUrl, 'GET /tenants/self', { key });
    expect(status).to.equal(200);
    for (const part of ['postgres', 'control-plane', 'data-plane', 'jobs']) {
      await eventually(async () => started.stderr().includes(`${part} runs again`));
    }
  });

  it('goes on when nobody reads its output any more, as with `npm start | head`', async () => {
    const started = start();
    started.child.stdout?.destroy();
    await eventually(async () => started.stderr().includes('"msg":"metrics"'));
    const [, port] = /"port":([0-9]+),"msg":"metrics"/.exec(started.stderr()) ?? [];
    const { status } = await call(`http://localhost:${port}`, 'GET /readyz');
    expect(status).to.equal(200);
    started.child.kill('SIGTERM');
    expect((await started.finished).code).to.equal(0);
  });

  it('starts again where a kill -9 of everything left it', async () => {
    const key = generateApiKey();
    const first = start({ SALLYPORT_BOOTSTRAP_KEY: key });
    await ready(first);
    const orphans = await childrenOf(first.child.pid);
    first.child.kill('SIGKILL');
    await first.finished;
    const { baseUrl } = await ready(start());
    await eventually(async () => orphans.every((pid) => !isRunning(pid)));
    const { status } = await call(baseUrl, 'GET /tenants/self', { key });
    expect(status).to.equal(200);
  });

  it('refuses a DATA_DIR that is in use, and leaves its owner alone', async () => {
    const { baseUrl, metricsUrl } = await ready(start());
    // Its port is taken too, which is not what is wrong.
    const settings = { ...ANY_PORT, PORT: new URL(baseUrl).port, DATA_DIR: dataDir };
    const { code, stderr } = await startProgram('embedded/start.ts', [], settings).finished;
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Sallyport did not start: DATA_DIR .* is in use by process [0-9]+/);
    expect((await call(metricsUrl, 'GET /readyz')).status).to.equal(200);
  });

  it('refuses to make a new key for a database that has one', async () => {
    await ready(start());
    await stop();
    await fs.rm(join(dataDir, 'kek'));
    const { code, stderr } = await start().finished;
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Sallyport did not start: the database is sealed with a key/);
    expect(await fs.readdir(dataDir)).not.to.include('kek');
  });

  it('says which setting is bad, and touches nothing', async () => {
    const { code, stdout, stderr } = await start({ PORT: 'secret' }).finished;
    expect([code, stdout]).to.deep.equal([1, '']);
    expect(stderr).to.match(/^Sallyport did not start: PORT must be a port number[^\n]*\n$/);
    expect(await fs.readdir(root)).to.deep.equal([]);
  });

  it('says which ports are taken before it makes a key', async () => {
    const others = [createServer().listen(0), createServer().listen(0)];
    const ports: string[] = [];
    await Promise.all(others.map((other) => once(other, 'listening')));
    for (const other of others) {
      const address = other.address();
      ports.push(String(typeof address === 'object' ? address?.port : ''));
    }
    const [port = '', metricsPort = ''] = ports;
    const { code, stdout, stderr } = await start({ PORT: port, METRICS_PORT: metricsPort })
      .finished;
    for (const other of others) other.close();
    expect([code, stdout]).to.deep.equal([1, '']);
    expect(stderr).to.contain(`port ${port} is in use by another program: set PORT`);
    expect(stderr).to.contain(`port ${metricsPort} is in use by another program: set METRICS_PORT`);
    expect(await fs.readdir(dataDir)).to.deep.equal([]);
  });

  it('says that LISTEN_HOST and METRICS_HOST are none of its addresses', async () => {
    const hosts = { LISTEN_HOST: '192.0.2.1', METRICS_HOST: '192.0.2.1' };
    const { code, stderr } = await start({ ...hosts, PORT: '3000', METRICS_PORT: '9090' }).finished;
    const problems = Object.keys(hosts).map((name) => `${name} is no address of this machine`);
    expect([code, stderr]).to.deep.equal([1, `Sallyport did not start: ${problems.join('; ')}\n`]);
  });

  it('checks the TLS files before it makes anything', async () => {
    const [cert, key, otherKey] = ['cert', 'key', 'other'].map((name) => join(root, name));
    const pair = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
    await run(
      'openssl',
      [...pair, '-nodes', '-subj', '/CN=localhost', '-keyout', `${key}`].concat([
        '-out',
        `${cert}`,
      ]),
    );
    await run('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', `${otherKey}`]);
    const cases = [
      [join(root, 'missing'), key, /: TLS_CERT_FILE .*missing cannot be read \(ENOENT\)\n$/],
      [key, key, /: TLS_CERT_FILE .* is not a PEM certificate\n$/],
      [cert, cert, /: TLS_KEY_FILE .* is not a PEM private key without passphrase\n$/],
      [cert, otherKey, /: TLS_KEY_FILE does not belong to TLS_CERT_FILE\n$/],
    ] as const;
    for (const [certFile, keyFile, said] of cases) {
      const { code, stderr } = await start({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile })
        .finished;
      expect(code).to.equal(1);
      expect(stderr).to.match(said);
    }
    expect(await fs.readdir(root)).to.have.members(['cert', 'key', 'other']);
  });

  it('ends at once on a second signal, with everything it started', async () => {
    const started = start();
    const { baseUrl } = await ready(started);
    const children = await childrenOf(started.child.pid);
    // A request that never ends keeps the data plane draining.
    const { hostname, port } = new URL(baseUrl);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write('POST /tokens HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n');
    started.child.kill('SIGINT');
    await eventually(async () => started.stderr().includes('"msg":"draining"'));
    expect(started.stderr()).to.match(/"stopping [^"]*another Ctrl-C or SIGTERM ends it at once"/);
    // Only a signal of its own counts, not the echo of the first.
    const again = setInterval(() => started.child.kill('SIGINT'), 100);
    const { code, stderr } = await started.finished.finally(() => clearInterval(again));
    socket.destroy();
    expect(code).to.equal(1);
    expect(stderr).to.contain('"msg":"ending at once"');
    await eventually(async () => children.every((pid) => !isRunning(pid)));
  });
});

async function childrenOf(pid: number | undefined): Promise<number[]> {
  const text = await fs.readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.trim().split(' ').filter(Boolean).map(Number);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Asks until it holds; mocha's time limit ends the test when it never does. */
async function eventually(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}
