/** The processes around the scripts: what they may, and what happens when one is lost. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect } from 'chai';
import { HOST_FILE } from '../../shared/sandbox/code-files.ts';
import { findIsolation, hostCommand } from '../../shared/sandbox/host-command.ts';
import { besideNeighbour, type Sandbox, startSandbox } from '../support/sandbox.ts';
import { skipAnywhere, skipUnlessLinux } from '../support/skip.ts';

const LOOP = 'module.exports = () => { for (;;) {} };';
const ABORTS =
  'module.exports = () => { const m = new Map(); for (let i = 0; ; i++) m.set(i, [i]); };';
const SLOW = 'module.exports = () => new Promise((r) => setTimeout(() => r("done"), 300));';

/** Runs `code` under the very command of a host, as if a script had taken the host over. */
function insideHost(code: string): string {
  const isolation = findIsolation();
  const [program, argv] = hostCommand(isolation, 1, '/nowhere');
  const command = [
    ...argv.slice(
      0,
      argv.findIndex((part) => part.endsWith(HOST_FILE)),
    ),
    '-e',
    code,
  ];
  const ended = spawnSync(program, command, {
    cwd: '/',
    env: {},
    encoding: 'utf8',
  });
  return ended.stdout.trim();
}

const attempt = (statement: string): string =>
  `try { ${statement}; console.log('done'); } catch (error) { console.log(error.code); }`;

/** Settles when there is no such process; the test's own time limit bounds the wait. */
async function gone(pid: number): Promise<void> {
  while (existsSync(`/proc/${pid}`) && !isZombie(pid)) await new Promise((r) => setTimeout(r, 10));
}

/** Ended, with nobody there who asks for its exit code. */
function isZombie(pid: number): boolean {
  try {
    return /^State:\sZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}

describe('a sandbox host', () => {
  it('may not read a file that is not its code', () => {
    for (const path of [
      '/etc/passwd',
      '/proc/self/environ',
      `${process.cwd()}/shared/api-keys.ts`,
    ]) {
      const code = attempt(`require('fs').readFileSync(${JSON.stringify(path)})`);
      expect(insideHost(code), path).to.equal('ERR_ACCESS_DENIED');
    }
  });

  it('may not write a file or start a process', () => {
    const write = attempt("require('fs').writeFileSync('/tmp/sallyport-escaped', 'x')");
    expect(insideHost(write)).to.equal('ERR_ACCESS_DENIED');
    expect(insideHost(attempt("require('child_process').execSync('id')"))).to.equal(
      'ERR_ACCESS_DENIED',
    );
  });

  it('has nothing of our environment', () => {
    const names: string[] = JSON.parse(
      insideHost('console.log(JSON.stringify(Object.keys(process.env)))'),
    );
    // What the shell sets by itself.
    expect(['PWD', 'OLDPWD', 'SHLVL', '_']).to.include.members(names);
  });

  it('reaches nothing on the network, not even loopback', async function () {
    if (findIsolation().network !== 'none') {
      skipAnywhere(this, 'this system allows no network namespace');
    }
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const code = `require('net').connect(${port}, '127.0.0.1').on('connect', () => console.log('connected'))
      .on('error', (error) => console.log(error.code))`;
    expect(insideHost(code)).to.equal('ENETUNREACH');
    await new Promise((resolve) => server.close(resolve));
    expect(connections).to.equal(0);
  });

  describe('of a running supervisor', () => {
    let sandbox: Sandbox;
    before(async () => {
      sandbox = await startSandbox({ tenant_running_max: 2, tenant_waiting_max: 2 });
    });
    after(() => sandbox.supervisor.close());

    it('leaves no core dump', function () {
      skipUnlessLinux(this, 'limits of a process are read from /proc');
      for (const pid of sandbox.supervisor.status().pids) {
        const limits = readFileSync(`/proc/${pid}/limits`, 'utf8');
        expect(limits).to.match(/^Max core file size +0 +0/m);
      }
    });

    it('has no privileges, groups or capabilities', function () {
      skipUnlessLinux(this, 'privileges of a process are read from /proc');
      if (process.getuid?.() !== 0) skipAnywhere(this, 'only root has privileges to give up');
      for (const pid of sandbox.supervisor.status().pids) {
        for (const task of readdirSync(`/proc/${pid}/task`)) {
          const status = readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8');
          expect(status).to.match(/^Uid:(?:\s65533){4}$/m);
          expect(status).to.match(/^Gid:(?:\s65533){4}$/m);
          expect(status).to.match(/^Groups:\s*$/m);
          expect(status.match(/^Cap(?:Prm|Eff):\s0+$/gm)).to.have.length(2);
        }
      }
    });

    it('says truly whether it is cut off from the network', () => {
      expect(sandbox.supervisor.status().network).to.equal(findIsolation().network);
    });

    it('that is killed costs nobody a run that can be started again', async () => {
      const [serving] = sandbox.supervisor.status().pids;
      const running = besideNeighbour(sandbox, () => sandbox.run(SLOW));
      process.kill(serving as number, 'SIGKILL');
      expect((await running).result).to.deep.equal({ kind: 'ok', value: '"done"' });
      expect(sandbox.supervisor.status().pids).not.to.include(serving);
    });

    it('that a script aborts answers that script alone, again and again', async () => {
      const script = {
        tenant_id: 'tenant',
        script_version: 'aborts',
        source: ABORTS,
        deadline_ms: 20_000,
      };
      for (let round = 0; round < 2; round += 1) {
        const { result } = await besideNeighbour(sandbox, () => sandbox.supervisor.run(script));
        expect(result.kind).to.be.oneOf(['crashed', 'memory']);
      }
    });

    it('is full for a tenant over its share, and for nobody else', async () => {
      const attack = (): Promise<string[]> =>
        Promise.all(
          Array.from({ length: 12 }, async () => {
            const { kind, ...rest } = await sandbox.result(LOOP, { deadline_ms: 500 });
            return `${kind} ${'scope' in rest ? rest.scope : ''}`;
          }),
        );
      const kinds = await besideNeighbour(sandbox, attack);
      expect(kinds.filter((kind) => kind === 'timeout ')).to.have.length.at.least(2);
      expect(kinds.filter((kind) => kind === 'busy tenant')).to.have.length.at.least(8);
    });

    it('does nothing for a run that is too large', async () => {
      const args = JSON.stringify('x'.repeat(11 * 1024 * 1024));
      expect((await sandbox.result('module.exports = () => 1;', { args })).kind).to.equal('error');
      const source = `module.exports = () => 1; // ${'x'.repeat(1024 * 1024)}`;
      expect((await sandbox.result(source)).kind).to.equal('type');
    });

    it('takes large arguments and gives back large results', async () => {
      const text = 'é'.repeat(1_000_000);
      const args = JSON.stringify({ text });
      expect(await sandbox.value('module.exports = (req) => req.args.text;', { args })).to.equal(
        text,
      );
    });
  });

  it('ends with its supervisor, and runs in flight are answered', async () => {
    const { supervisor, result } = await startSandbox();
    const { pids } = supervisor.status();
    const running = result(SLOW);
    await supervisor.close();
    expect(await running).to.deep.equal({ kind: 'busy', scope: 'machine' });
    expect(await result(SLOW)).to.deep.equal({ kind: 'busy', scope: 'machine' });
    for (const pid of pids) expect(() => process.kill(pid, 0)).to.throw('ESRCH');
  });

  it('ends with a gateway that is killed, whatever its scripts do', async () => {
    const supervisor = new URL('../../shared/sandbox/supervisor.ts', import.meta.url).href;
    const source = 'module.exports = () => { let x = 3n; console.log(1); for (;;) x *= x; };';
    const program = `const { Supervisor } = await import(${JSON.stringify(supervisor)});
      const supervisor = await Supervisor.start({ host_count: 1, strict: false });
      const run = (tenant_id, source) => supervisor.run({ tenant_id, script_version: '1', source });
      void run('a', ${JSON.stringify(source)});
      await run('b', 'module.exports = () => new Promise((r) => setTimeout(r, 200));');
      console.log(JSON.stringify(supervisor.status().pids));`;
    const gateway = spawn(process.execPath, ['--input-type=module', '-e', program]);
    const [line] = (await once(gateway.stdout, 'data')) as [Buffer];
    const pids: number[] = JSON.parse(line.toString());
    expect(pids).to.have.length(2);
    gateway.kill('SIGKILL');
    await once(gateway, 'exit');
    for (const pid of pids) await gone(pid);
  });

  it('keeps its memory over thousands of runs', async function () {
    skipUnlessLinux(this, 'memory of a process is read from /proc');
    const sandbox = await startSandbox({ tenant_running_max: 16, tenant_waiting_max: 200 });
    const script = {
      ...{ tenant_id: 'tenant', script_version: '1', args: JSON.stringify('x'.repeat(10_000)) },
      source:
        'module.exports = async (req) => { setTimeout(() => {}, 9e5); return req.args.length; };',
    };
    const round = async (): Promise<void> => {
      const runs = Array.from({ length: 100 }, () => sandbox.supervisor.run(script));
      for (const { result } of await Promise.all(runs)) {
        expect(result).to.deep.equal({ kind: 'ok', value: '10000' });
      }
    };
    try {
      for (let rounds = 0; rounds < 20; rounds += 1) await round();
      const { pids } = sandbox.supervisor.status();
      // Every run held 10 kB and a context; leaked ones would be hundreds of MiB, and end the host.
      for (const pid of pids) {
        const resident = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
        expect(Number(resident)).to.be.below(500 * 1024);
      }
    } finally {
      await sandbox.supervisor.close();
    }
  });
});
