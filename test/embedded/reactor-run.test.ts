import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { skipUnlessLinux } from '../support/skip.ts';
import { type Finished, startProgram } from '../support/start-program.ts';
import { startHttp } from '../unit/egress/destinations.ts';

/** Nothing of a database can be reached: the command must not try. */
const SETTINGS = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nowhere' };
const SECRET = '4242424242424242';
const SDK = '@basis-theory/basis-theory-reactor-formulas-sdk-js';

describe('sallyport reactor run', function () {
  this.timeout(120_000);
  let folder: string;
  before(async () => {
    folder = await fs.mkdtemp(join(tmpdir(), 'sallyport-reactor-run-'));
  });
  after(() => fs.rm(folder, { recursive: true, force: true }));

  async function file(name: string, text: string | Uint8Array): Promise<string> {
    const path = join(folder, name);
    await fs.writeFile(path, text);
    return path;
  }

  async function run(
    code: string,
    options: string[] = [],
    settings: NodeJS.ProcessEnv = {},
  ): Promise<Finished> {
    const script = await file('script.js', code);
    const args = ['reactor', 'run', script, ...options];
    return startProgram('cli/main.ts', args, { ...SETTINGS, ...settings }).finished;
  }

  /** Exit code and the error that a run's `--json` tells. */
  async function failure(code: string, options: string[] = []): Promise<unknown[]> {
    const ended = await run(code, ['--json', ...options]);
    const { result, error } = JSON.parse(ended.stdout);
    return [ended.code, result, error.status, error.errors?.error ?? error];
  }

  it('prints the result on one line, console and time beside it, without a database', async () => {
    const args = await file('args.json', '{"number":"4111","amount":1.50}\n');
    const configuration = await file('configuration.json', '{"KEY":"k","LIVE":true}');
    const code = `module.exports = async (req) => {
      console.log('amount', req.args.amount);
      console.error('two\\nlines');
      return { raw: { ...req.args, ...req.configuration, bt: req.bt } };
    };`;
    const ended = await run(code, ['--args', args, '--configuration', configuration]);
    expect([ended.code, ended.stdout]).to.deep.equal([
      0,
      '{"raw":{"number":"4111","amount":1.5,"KEY":"k","LIVE":true,"bt":null}}\n',
    ]);
    expect(ended.stderr).to.match(
      /^log: amount 1\.5\nerror: two\n {2}lines\nended after \d+ ms\n$/,
    );
  });

  it('answers a program with one object that has everything', async () => {
    const ended = await run(`module.exports = (req) => { console.warn('w'); return null; };`, [
      '--json',
    ]);
    const { duration_ms, ...rest } = JSON.parse(ended.stdout);
    expect([ended.code, ended.stderr]).to.deep.equal([0, '']);
    expect(rest).to.deep.equal({
      result: null,
      console: [{ level: 'warn', text: 'w' }],
      error: null,
    });
    expect(duration_ms).to.be.a('number');
  });

  it('reads the arguments from standard input, an absent configuration as empty', async () => {
    const code = 'module.exports = (req) => ({ raw: [req.args, req.configuration] });';
    const script = await file('script.js', code);
    const child: ChildProcess = spawn(
      process.execPath,
      ['cli/main.ts', 'reactor', 'run', script, '--args', '-'],
      { env: { PATH: process.env.PATH }, stdio: ['pipe', 'pipe', 'ignore'] },
    );
    let stdout = '';
    child.stdout?.on('data', (text: Buffer) => {
      stdout += text.toString();
    });
    child.stdin?.end('["from", "a pipe"]');
    const [exitCode] = await once(child, 'close');
    expect([exitCode, stdout]).to.deep.equal([0, '{"raw":[["from","a pipe"],{}]}\n']);
  });

  it('finds files from where npm was called, not from the folder that npm runs it in', async () => {
    await file('here.js', 'module.exports = (req) => ({ raw: [req.args, req.configuration] });');
    await file('here.json', '{"a":1}');
    const args = [
      'reactor',
      'run',
      'here.js',
      '--args',
      'here.json',
      '--configuration',
      'here.json',
    ];
    const npm = { INIT_CWD: folder, npm_lifecycle_event: 'sallyport' };
    const ended = await startProgram('cli/main.ts', args, { ...SETTINGS, ...npm }).finished;
    expect([ended.code, ended.stdout]).to.deep.equal([0, '{"raw":[{"a":1},{"a":1}]}\n']);
    // Somebody else's script inherits the variable, and means the folder that it runs in.
    const other = { ...SETTINGS, ...npm, npm_lifecycle_event: 'try' };
    expect((await startProgram('cli/main.ts', args, other).finished).code).to.equal(2);
  });

  it('ends with 1 and the documented form for what the script throws', async () => {
    const code = `const { RateLimitError } = require('${SDK}');
      module.exports = async () => { throw new RateLimitError({ card: ['slow down'] }); };`;
    const ended = await run(code);
    const [place, error] = ended.stderr.split('\n');
    expect([ended.code, ended.stdout, place]).to.deep.equal([
      ...[1, '', `${join(folder, 'script.js')}:2`],
    ]);
    expect(JSON.parse(error ?? '')).to.deep.equal({
      title: 'One or more validation errors occurred.',
      status: 429,
      detail: 'Rate Limit Exceeded',
      errors: { card: ['slow down'] },
    });
  });

  it('names the line that does not compile', async () => {
    const ended = await run('module.exports = () => {\n  const a = 1;\n  return { a: };\n};');
    const [place, error] = ended.stderr.split('\n');
    expect([ended.code, place]).to.deep.equal([1, `${join(folder, 'script.js')}:3`]);
    expect(JSON.parse(error ?? '').status).to.equal(422);
    expect(error).to.contain('(line 3)');
  });

  it('ends with 3 when the sandbox ends the script', async () => {
    const endless = await failure('module.exports = () => { for (;;); };', ['--timeout-ms', '300']);
    const message = 'The reactor timed out: it was not done within 0.3 s, waiting included.';
    expect(endless).to.deep.equal([3, null, 500, [message]]);
    const bomb =
      'module.exports = () => { const a = []; for (;;) a.push(new Array(1e5).fill(0)); };';
    expect(await failure(bomb)).to.deep.equal([3, null, 500, ['The reactor ran out of memory.']]);
    expect(
      await failure(`module.exports = () => ({ raw: 'x'.repeat(${5 * 1024 * 1024}) });`),
    ).to.deep.equal([3, null, 500, ['The result of the reactor is larger than 5 MiB.']]);
  });

  it('ends with 2 for files that cannot be used, and repeats nothing of them', async () => {
    const broken = await file('broken.json', `{"number": "${SECRET}"`);
    const nested = await file('nested.json', `{"KEY": {"number": "${SECRET}"}}`);
    const large = await file('large.json', Buffer.alloc(5 * 1024 * 1024 + 1, '1'));
    const misused: [string[], string][] = [
      [['--args', broken], 'the file of --args cannot be used. Invalid JSON'],
      [['--args', `{"number":"${SECRET}"}`], 'the file of --args cannot be read (ENOENT)'],
      [['--args', folder], 'the file of --args cannot be read (EISDIR)'],
      [['--args', large], 'the file of --args is larger than 5242880 bytes'],
      [['--args', '/dev/zero'], 'the file of --args is larger than 5242880 bytes'],
      [['--configuration', nested], 'the file of --configuration must hold one object'],
      [['--timeout-ms', '210001'], 'must be 1 to 210000'],
      [['--timeout-ms', '0'], 'must be 1 to 210000'],
      [['--transform', 'both'], 'Allowed choices are request, response'],
    ];
    for (const [options, message] of misused) {
      const { code, stdout, stderr } = await run('module.exports = () => null;', options);
      expect([code, stdout], message).to.deep.equal([2, '']);
      expect(stderr).to.contain(message).and.not.contain(SECRET);
    }
    const settings = { SALLYPORT_EGRESS_CA_FILE: join(folder, 'nothing.pem') };
    const ended = await run('module.exports = () => null;', [], settings);
    expect([ended.code, ended.stdout]).to.deep.equal([2, '']);
    expect(ended.stderr).to.contain('SALLYPORT_EGRESS_CA_FILE names a file that cannot be read');
  });

  it('says what of the script cannot be used: missing, not text, too large', async () => {
    const paths: [string, string][] = [
      [join(folder, 'nothing.js'), 'the script cannot be read (ENOENT)'],
      [await file('bytes.js', new Uint8Array([0xff, 0xfe])), 'the script is not UTF-8 text'],
      [await file('large.js', ' '.repeat(1024 * 1024 + 1)), 'the script is larger than 1048576'],
    ];
    for (const [path, message] of paths) {
      const { finished } = startProgram('cli/main.ts', ['reactor', 'run', path], SETTINGS);
      const { code, stderr } = await finished;
      expect([code, stderr.includes(message)], stderr).to.deep.equal([2, true]);
    }
  });

  it('checks that the result of a transform is a message', async () => {
    const request = ['--transform', 'request'];
    const good = await run('module.exports = (req) => ({ body: "a=1" });', request);
    expect([good.code, good.stdout]).to.deep.equal([0, '{"body":"a=1"}\n']);
    expect(await failure('module.exports = () => ({ raw: 1 });', request)).to.deep.equal([
      ...[1, null, 500],
      ['A request transform must return an object with body, headers or both.'],
    ]);
    const older = 'module.exports = () => ({ raw: { headers: { n: 1, "Set-Cookie": ["a"] } } });';
    expect((await run(older, request)).code).to.equal(0);
    expect(
      await failure('module.exports = () => ({ headers: { a: {} } });', [
        ...['--transform', 'response'],
      ]),
    ).to.deep.equal([1, null, 500, ['The headers of a transform must be an object of texts.']]);
  });

  it('fetches through the egress guard: nothing private without SALLYPORT_EGRESS_ALLOW', async () => {
    const destination = await startHttp((_request: IncomingMessage, response: ServerResponse) => {
      response.end('reached');
    });
    try {
      const url = `http://127.0.0.1:${destination.port}/`;
      const code = `module.exports = async () => ({ raw: await (await fetch('${url}')).text() });`;
      const [exitCode, , status] = await failure(code);
      expect([exitCode, status, destination.connections()]).to.deep.equal([1, 500, 0]);
      const why = 'The host leads to an address that is not public';
      const thrown = await run(code);
      const [error, ...rest] = thrown.stderr.split('\n');
      expect(JSON.parse(String(error)).errors.error[0]).to.contain(why);
      expect(rest.join()).to.match(/^ended after \d+ ms,$/);
      const twice = `await fetch('${url}').catch(() => fetch('${url}')).catch(() => 0);`;
      const caught = await run(`module.exports = async () => { ${twice} };`);
      expect([caught.code, caught.stderr.split(why).length]).to.deep.equal([0, 2]);
      expect(caught.stderr).to.match(
        /^a connection was refused: The host .*\nended after \d+ ms\n$/,
      );
      const allowed = await run(code, [], { SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8' });
      expect([allowed.code, allowed.stdout]).to.deep.equal([0, '{"raw":"reached"}\n']);
    } finally {
      await destination.close();
    }
  });

  it('gives the script nothing of this machine: no environment, files or modules of Node', async () => {
    const code = `module.exports = () => ({ raw: [Object.keys(process.env), process.pid] });`;
    const ended = await run(code, [], { SALLYPORT_KEK: Buffer.alloc(32).toString('base64') });
    expect(JSON.parse(ended.stdout)).to.deep.equal({ raw: [[], 1] });
    expect(await failure(`require('fs'); module.exports = () => null;`)).to.deep.equal([
      ...[1, null, 422],
      ['There is no module "fs".'],
    ]);
  });

  it('prints nothing that acts on a terminal, and no line that passes for another', async () => {
    const code = `module.exports = () => {
      console.log('\\x1b]0;title\\x07\\u009b31m\\u202e\\r\\nended after 0 ms');
      return { raw: '\\u009b31m\\u202e' };
    };`;
    const ended = await run(code);
    const acting = /[\0-\x08\x0b-\x1f\x7f-\x9f\u202e]/;
    expect(ended.stdout).not.to.match(acting);
    expect(ended.stderr).not.to.match(acting);
    expect(JSON.parse(ended.stdout)).to.deep.equal({ raw: '\u009b31m\u202e' });
    expect(ended.stderr.split('\n').filter((line) => line.startsWith('ended'))).to.have.length(1);
  });

  it('ends the sandbox with it on Ctrl-C', async function () {
    skipUnlessLinux(this, 'child processes are found in /proc');
    const script = await file('endless.js', 'module.exports = () => { for (;;); };');
    const { child, finished } = startProgram('cli/main.ts', ['reactor', 'run', script], SETTINGS);
    const host = await untilHostRuns(child.pid ?? 0);
    child.kill('SIGINT');
    const { code, stdout } = await finished;
    expect([code, stdout]).to.deep.equal([130, '']);
    expect(isAlive(host)).to.equal(false);
  });
});

/** The pid of the only child that computes, once it does. */
async function untilHostRuns(parent: number): Promise<number> {
  const giveUpAt = Date.now() + 30_000;
  while (Date.now() < giveUpAt) {
    for (const pid of (await fs.readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const stat = await fs.readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      // proc(5): field 4 is the parent, 14 the user time in ticks of 10 ms, after 2 that are cut off.
      const isBusy = Number(fields[11]) > 100;
      if (Number(fields[1]) === parent && isBusy) return Number(pid);
    }
    await delay(50);
  }
  throw new Error('no sandbox host has computed for a second');
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}
