/**
 * What else can happen to the processes of an installation: a crash that would leave a core dump, no
 * descriptors left, a log that cannot be written, a control plane that hangs, a start that is killed.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { createApplication } from '../security/planes.ts';
import { call } from '../support/http-call.ts';
import { descendants, processes } from '../support/process-tree.ts';
import { type Installation, install, type Part } from './installation.ts';

const PARTS = ['start', 'data-plane', 'control-plane', 'jobs'] as const;
const PATIENCE_MS = 20_000;
const SOCKETS = 100;
const SPARE_DESCRIPTORS = 10;

describe('processes of an installation', function () {
  this.timeout(90_000);
  let installation: Installation;
  let key: string;

  before(async () => {
    installation = await install({ SANDBOX_HOSTS: '0' });
    const { managementKey } = installation;
    ({ key } = await createApplication(installation.baseUrl(), { managementKey }));
    await call(installation.baseUrl(), 'POST /tokens', {
      ...{ key, json: { id: 'kept', type: 'token', data: 1 } },
    });
  });
  after(() => installation?.remove());

  const read = async (): Promise<number> =>
    (await call(installation.baseUrl(), 'GET /tokens/kept', { key }).catch(() => NOBODY)).status;
  const manage = () =>
    call(installation.baseUrl(), 'GET /tenants/self', { key: installation.managementKey });

  async function until(what: string, isReached: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!(await isReached())) {
      if (performance.now() > deadline) throw new Error(`not in time: ${what}`);
      await delay(20);
    }
  }
  const isReplaced = (part: Part, before: number) => async () => {
    const now = await installation.pidOf(part).catch(() => before);
    return now !== before && (await read()) === 200;
  };

  it('may leave nothing of their memory in a core dump', async () => {
    for (const part of PARTS) {
      const path = `/proc/${await installation.pidOf(part)}`;
      expect(Number.parseInt(await readFile(`${path}/coredump_filter`, 'utf8'), 16), part).to.equal(
        0,
      );
      const limits = await readFile(`${path}/limits`, 'utf8');
      if (part !== 'start') expect(limits).to.match(/^Max core file size +0 +0 /m);
    }
  });

  it('are replaced after a crash, which leaves no file behind', async () => {
    const before = await installation.pidOf('data-plane');
    process.kill(before, 'SIGSEGV');
    await until('replaced', isReplaced('data-plane', before));
    for (const directory of [process.cwd(), installation.dataDir]) {
      const odd = (await readdir(directory)).filter((name) => /^(core|report)\b/.test(name));
      expect(odd, directory).to.deep.equal([]);
    }
  });

  it('end at once on a second signal, whatever is still open', async () => {
    const before = await installation.pidOf('data-plane');
    const sending = request(`${installation.baseUrl()}/tokens`, {
      method: 'POST',
      agent: false,
      headers: { 'bt-api-key': key, 'content-type': 'application/json', expect: '100-continue' },
    });
    sending.flushHeaders();
    const torn = once(sending, 'error');
    await once(sending, 'continue');
    process.kill(before, 'SIGTERM');
    await until('draining', async () => (await read()) === 0);
    expect(await installation.pidOf('data-plane')).to.equal(before);
    process.kill(before, 'SIGTERM');
    expect((await torn)[0]).to.have.property('code', 'ECONNRESET');
    await until('replaced', isReplaced('data-plane', before));
  });

  it('serve on when their descriptors were used up', async () => {
    const pid = await installation.pidOf('data-plane');
    const used = (await readdir(`/proc/${pid}/fd`)).length;
    const limit = used + SPARE_DESCRIPTORS;
    execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limit}:`]);
    const sockets = await openSockets(SOCKETS);
    const held = sockets.filter((socket) => !socket.destroyed).length;
    for (const socket of sockets) socket.destroy();
    execFileSync('prlimit', ['--pid', String(pid), '--nofile=4096:']);
    await until('served', async () => (await read()) === 200);
    expect(await installation.pidOf('data-plane')).to.equal(pid);
    expect(held).to.be.greaterThan(0);
  });

  async function openSockets(count: number): Promise<Socket[]> {
    const port = Number(new URL(installation.baseUrl()).port);
    const sockets = Array.from({ length: count }, () => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined).resume();
      return socket;
    });
    const settled = (socket: Socket) =>
      new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
    await Promise.all(sockets.map(settled));
    // Some are closed unanswered, some wait unaccepted: nobody may be served for good or not at all.
    const answers = await Promise.all(Array.from({ length: 10 }, read));
    expect(answers.every((status) => [0, 200, 503].includes(status))).to.equal(true);
    return sockets;
  }

  it('serve tokens while the control plane hangs, and give up waiting for it', async () => {
    const pid = await installation.pidOf('control-plane');
    process.kill(pid, 'SIGSTOP');
    let managed: Promise<{ status: number }>;
    try {
      const waiting = manage();
      for (let round = 0; round < 20; round += 1) expect(await read()).to.equal(200);
      // It still hangs: after 30 s nobody waits for it any more.
      const { status, headers } = await waiting;
      expect([status, headers.get('retry-after')]).to.deep.equal([503, '1']);
      managed = manage();
      expect(await read()).to.equal(200);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    expect((await managed).status).to.equal(200);
  });

  it('end when the one that started them is killed, and the next start takes over', async () => {
    const pids = await installation.pids();
    const postgres = await descendants(await installation.pidOf('postmaster'));
    process.kill(await installation.pidOf('start'), 'SIGKILL');
    const ours = pids.filter((pid) => !postgres.includes(pid));
    expect(ours.length).to.be.at.least(PARTS.length);
    await until('ended', async () => {
      const running = (await processes()).map(({ pid }) => pid);
      return !ours.some((pid) => running.includes(pid));
    });
    await installation.start();
    expect(await read()).to.equal(200);
  });
});

describe('an installation whose log cannot be written', function () {
  this.timeout(60_000);

  it('serves all the same', async () => {
    const dataDir = join(await mkdtemp(join(tmpdir(), 'sallyport-log-')), 'data');
    // Every write fails as on a full disk.
    const full = await open('/dev/full', 'w');
    const entry = fileURLToPath(new URL('../../embedded/start.ts', import.meta.url));
    const ports = { PORT: '0', CONTROL_PLANE_PORT: '0', METRICS_PORT: '0' };
    const child = spawn(process.execPath, [entry], {
      env: { ...process.env, ...ports, DATA_DIR: dataDir, LOG_LEVEL: 'debug', SANDBOX_HOSTS: '0' },
      stdio: ['ignore', 'pipe', full.fd],
    });
    const ended = once(child, 'exit');
    try {
      const { url, key } = await welcome(child.stdout as NodeJS.ReadableStream);
      for (let round = 0; round < 5; round += 1) {
        const { status } = await call(url, 'GET /tenants/self', { key });
        expect(status).to.equal(200);
      }
      child.kill('SIGTERM');
      expect((await ended)[0]).to.equal(0);
    } finally {
      child.kill('SIGKILL');
      await full.close();
      await rm(join(dataDir, '..'), { recursive: true });
    }
  });
});

/** What a first start tells: its address and the key it made. */
async function welcome(output: NodeJS.ReadableStream): Promise<{ url: string; key: string }> {
  let key = '';
  for await (const line of createInterface({ input: output })) {
    key = /\bkey_[1-9A-HJ-NP-Za-km-z]+/.exec(line)?.[0] ?? key;
    const [, url] = /^Sallyport is ready at (\S+)$/.exec(line) ?? [];
    if (url !== undefined) {
      output.resume();
      return { url, key };
    }
  }
  throw new Error('ended before it was ready');
}

const NOBODY = { status: 0 } as const;
