import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import pg from 'pg';
import type { OwnerReport } from '../support/embedded-owner.ts';

const { chmod, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } = fs;

const OWNER = new URL('../support/embedded-owner.ts', import.meta.url).pathname;
const PAN = '4242424242424242';

/** A running owner program with what it said. */
interface Owner extends OwnerReport {
  readonly child: ChildProcess;
  log(): string;
}

describe('the embedded Postgres', () => {
  let root: string;
  let dataDir: string;
  const children = new Set<ChildProcess>();

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'sallyport-home-'));
    // A clone under /root: nobody else may enter the directory above, not even Postgres' user.
    await chmod(root, 0o700);
    dataDir = join(root, 'clone', '.sallyport');
    await mkdir(join(root, 'clone'));
  });

  afterEach(async () => {
    for (const child of children) await end(child, 'SIGTERM');
    expect(await serversIn(join(dataDir, 'postgres'))).to.deep.equal([]);
  });

  after(() => rm(root, { recursive: true }));

  it('starts under a directory closed to others, as an ordinary user', async () => {
    const owner = await startOwner(dataDir);
    const { uid } = await stat(`/proc/${owner.pid}`);
    expect(uid).to.equal(process.getuid?.() === 0 ? 65_534 : process.getuid?.());
    const { rows } = await ask(owner, `SELECT current_user AS role, version()`);
    expect(rows[0]?.role).to.equal('sallyport');
    expect(rows[0]?.version).to.match(/^PostgreSQL 18\./);
  });

  it('listens on no network, and on a socket in a closed directory', async () => {
    const owner = await startOwner(dataDir);
    const { rows } = await ask(owner, 'SHOW listen_addresses');
    expect(rows[0]?.listen_addresses).to.equal('');
    const socket = await lstat(join(dataDir, 'socket'));
    expect(socket.mode & 0o777).to.equal(0o700);
    const password = await lstat(join(dataDir, 'postgres-password'));
    expect(password.mode & 0o777).to.equal(0o600);
  });

  it('asks for the password, also on the socket', async () => {
    const owner = await startOwner(dataDir);
    const url = owner.connectionString.replace(/:[^:@]+@/, ':wrong@');
    const error = await ask({ connectionString: url }, 'SELECT 1').catch((reason) => reason);
    expect(error.code).to.equal('28P01');
  });

  it('gives its role no way to programs and files of the server', async () => {
    const owner = await startOwner(dataDir);
    const attacks = [
      `COPY (SELECT 1) TO PROGRAM 'id'`,
      `SELECT pg_read_file('postgresql.conf')`,
      `SET log_min_error_statement = 'debug1'`,
      'CREATE ROLE intruder SUPERUSER',
    ];
    for (const attack of attacks) {
      const error = await ask(owner, attack).catch((reason) => reason);
      expect(error.code, attack).to.equal('42501');
    }
  });

  it('logs neither statements nor values, whatever fails', async () => {
    const owner = await startOwner(dataDir);
    const failing: [string, unknown[]][] = [
      [`SELECT '${PAN}'::uuid`, []],
      ['SELECT $1::uuid', [PAN]],
      [`SELECT ${PAN} FROM nowhere`, []],
      [`DO $$ BEGIN RAISE WARNING 'it is ${PAN}'; RAISE EXCEPTION '${PAN}'; END $$`, []],
      ['SELECT pg_terminate_backend(pg_backend_pid()), $1::text', [PAN]],
    ];
    await ask(owner, `CREATE TABLE IF NOT EXISTS cards (number text PRIMARY KEY)`);
    await ask(owner, `INSERT INTO cards VALUES ($1) ON CONFLICT DO NOTHING`, [PAN]);
    failing.push(['INSERT INTO cards VALUES ($1)', [PAN]]);
    for (const [statement, values] of failing) {
      const error = await ask(owner, statement, values).catch((reason) => reason);
      expect(error, statement).to.be.instanceOf(Error);
    }
    await end(owner.child, 'SIGTERM');
    expect(owner.log()).to.contain('terminating connection').and.not.contain(PAN);
  });

  it('leaves no core dump, whatever the limits of who started it', async () => {
    const owner = await startOwner(dataDir);
    const limits = await readFile(`/proc/${owner.pid}/limits`, 'utf8');
    expect(limits).to.match(/Max core file size\s+0\s+0/);
  });

  it('stops with a checkpoint: the next start has nothing to recover', async () => {
    await end((await startOwner(dataDir)).child, 'SIGTERM');
    const owner = await startOwner(dataDir);
    expect(owner.log()).to.contain('database system was shut down at');
    expect(owner.log()).not.to.contain('not properly shut down');
  });

  it('is started again when it is killed, with everything that was committed', async () => {
    const owner = await startOwner(dataDir);
    await ask(owner, 'CREATE TABLE IF NOT EXISTS survivors (id int)');
    await ask(owner, 'INSERT INTO survivors VALUES (1)');
    const again = nextLine(owner.child, 'ready to accept connections');
    process.kill(owner.pid, 'SIGKILL');
    await again;
    const { rows } = await ask(owner, 'SELECT id FROM survivors');
    expect(rows).to.deep.equal([{ id: 1 }]);
  });

  it('replaces the server that a killed owner left running', async () => {
    const first = await startOwner(dataDir);
    await end(first.child, 'SIGKILL');
    expect(await serversIn(join(dataDir, 'postgres'))).to.include(first.pid);
    const second = await startOwner(dataDir);
    expect(second.pid).not.to.equal(first.pid);
    expect((await ask(second, 'SELECT 1 AS one')).rows).to.deep.equal([{ one: 1 }]);
  });

  it('is not held up by a postmaster.pid whose process is another program now', async () => {
    const other = spawn('sleep', ['60'], userOfPostgres());
    children.add(other);
    await once(other, 'spawn');
    const lines = [other.pid, join(dataDir, 'postgres'), 0, 5432, '', '', '0 0', 'ready', ''];
    await writeFile(join(dataDir, 'postgres', 'postmaster.pid'), lines.join('\n'));
    await startOwner(dataDir);
    expect(other.exitCode ?? other.signalCode, 'the other program is left alone').to.equal(null);
  });

  it('starts over after an initdb that was interrupted', async () => {
    const directory = join(root, 'interrupted');
    await mkdir(join(directory, 'postgres.new'), { recursive: true, mode: 0o700 });
    await writeFile(join(directory, 'postgres.new', 'PG_VERSION'), '18\n');
    const owner = await startOwner(directory);
    expect((await ask(owner, 'SELECT 1 AS one')).rows).to.deep.equal([{ one: 1 }]);
    await end(owner.child, 'SIGTERM');
    expect(await readdir(directory)).not.to.include('postgres.new');
  });

  it('finds a place for its socket when the path is too long for one', async () => {
    const directory = join(root, 'long'.repeat(30));
    const owner = await startOwner(directory);
    const socket = (await readFile(join(directory, 'postgres-socket'), 'utf8')).trim();
    expect(Buffer.byteLength(socket)).to.be.lessThan(90);
    expect((await lstat(socket)).mode & 0o777).to.equal(0o700);
    expect((await ask(owner, 'SELECT 1 AS one')).rows).to.deep.equal([{ one: 1 }]);
    await end(owner.child, 'SIGTERM');
    expect(await stat(socket).catch((error) => error.code)).to.equal('ENOENT');
  });

  it('refuses a directory of another major version, and one without its password', async () => {
    const copy = join(root, 'foreign');
    await mkdir(join(copy, 'postgres'), { recursive: true, mode: 0o700 });
    await writeFile(join(copy, 'postgres', 'PG_VERSION'), '17\n');
    expect(await failureOf(copy)).to.contain('is of Postgres 17');
    await rm(join(dataDir, 'postgres-password'));
    expect(await failureOf(dataDir)).to.contain('postgres-password');
  });

  async function startOwner(directory: string): Promise<Owner> {
    const child = spawn(process.execPath, [OWNER, directory], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.add(child);
    const lines: string[] = [];
    createInterface({ input: child.stderr }).on('line', (line) => lines.push(line));
    const log = (): string => lines.join('\n');
    const first = createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
    const report = await Promise.race([first, once(child, 'close')]);
    if (Array.isArray(report) || report.done === true) throw new Error(log());
    return { ...(JSON.parse(report.value) as OwnerReport), child, log };
  }

  async function failureOf(directory: string): Promise<string> {
    const started = await startOwner(directory).catch((error: Error) => error);
    expect(started).to.be.instanceOf(Error);
    return (started as Error).message;
  }

  async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    children.delete(child);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }
});

async function ask(
  { connectionString }: Pick<OwnerReport, 'connectionString'>,
  statement: string,
  values: unknown[] = [],
): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => undefined);
  await client.connect();
  return client.query(statement, values).finally(() => client.end().catch(() => undefined));
}

function nextLine(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve) => {
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => {
      if (line.includes(text)) resolve();
    });
  });
}

function userOfPostgres(): { uid?: number; gid?: number } {
  return process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
}

/** The Postgres processes that work in a directory, found without our own code. */
async function serversIn(directory: string): Promise<number[]> {
  const pids = execFileSync('ps', ['-eo', 'pid='], { encoding: 'utf8' }).split('\n').map(Number);
  const found: number[] = [];
  for (const pid of pids.filter((each) => each > 1)) {
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
    if (cwd === directory) found.push(pid);
  }
  return found;
}
