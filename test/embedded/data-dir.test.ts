import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  createDataDir,
  type DataDir,
  DataDirBusyError,
  lockDataDir,
} from '../../embedded/data-dir.ts';
import { createLocalKek, readLocalKek } from '../../embedded/local-kek.ts';
import { ownIdentity, processStart } from '../../embedded/process-identity.ts';

const { chmod, chown, mkdir, mkdtemp, readFile, readdir, rm, stat, utimes, writeFile } = fs;

let root: string;
let dataDir: DataDir;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sallyport-data-dir-'));
  dataDir = await createDataDir(join(root, 'data'));
});
afterEach(() => rm(root, { recursive: true }));

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o777;
}

async function busyOf(attempt: Promise<unknown>): Promise<DataDirBusyError> {
  const error: unknown = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(DataDirBusyError);
  return error as DataDirBusyError;
}

describe('createDataDir', () => {
  it('makes a directory for its owner alone', async () => {
    expect(await modeOf(dataDir.path)).to.equal(0o700);
  });

  it('closes an empty one that stood open', async () => {
    await chmod(dataDir.path, 0o755);
    await createDataDir(dataDir.path);
    expect(await modeOf(dataDir.path)).to.equal(0o700);
  });

  it('makes those above it that are missing', async () => {
    await createDataDir(join(root, 'a', 'b', 'c'));
    expect(await modeOf(join(root, 'a', 'b', 'c'))).to.equal(0o700);
  });

  it('leaves a directory with other files as it was', async () => {
    // DATA_DIR=/usr/lib as root once closed /usr/lib to everybody.
    const other = join(root, 'lib');
    await mkdir(other, { mode: 0o755 });
    await chmod(other, 0o755);
    await writeFile(join(other, 'libc.so'), '');
    expect(await refusalOf(other)).to.match(
      /^DATA_DIR .*lib is not empty and not a Sallyport directory/,
    );
    expect([await modeOf(other), await readdir(other)]).to.deep.equal([0o755, ['libc.so']]);
  });

  it('refuses a vault that others may enter, and leaves it as it was', async () => {
    await createLocalKek(dataDir);
    await createDataDir(dataDir.path);
    await chmod(dataDir.path, 0o750);
    expect(await refusalOf(dataDir.path)).to.match(/^DATA_DIR .* is open to other users/);
    expect(await modeOf(dataDir.path)).to.equal(0o750);
  });

  it('goes on with what an interrupted start left', async () => {
    await mkdir(join(dataDir.path, 'postgres.new'));
    await writeFile(dataDir.postgresPassword, '');
    await createDataDir(dataDir.path);
  });

  it('refuses one of another user', async () => {
    const isRoot = process.getuid?.() === 0;
    if (isRoot) await chown(dataDir.path, 65_534, 65_534);
    const path = isRoot ? dataDir.path : '/';
    expect(await refusalOf(path)).to.match(/^DATA_DIR .* belongs to another user/);
  });

  it('names the variable when a directory cannot be made there', async () => {
    // Node's recursive mkdir goes round for ever here.
    expect(await refusalOf('/proc/x')).to.match(/^DATA_DIR: \/proc\/x cannot be made \([A-Z]+\)$/);
    const file = join(root, 'file');
    await writeFile(file, '');
    expect(await refusalOf(file)).to.match(/^DATA_DIR: .* cannot be read \(ENOTDIR\)$/);
    expect(await refusalOf(join(file, 'x'))).to.match(/^DATA_DIR: .* cannot be used \(ENOTDIR\)$/);
  });

  async function refusalOf(path: string): Promise<string> {
    const error: unknown = await createDataDir(path).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(Error);
    return (error as Error).message;
  }
});

describe('lockDataDir', () => {
  it('lets one owner in and names it to the next', async () => {
    const lock = await lockDataDir(dataDir);
    const busy = await busyOf(lockDataDir(dataDir));
    expect(busy.message).to.contain(String(process.pid));
    await lock.release();
    await (await lockDataDir(dataDir)).release();
    expect(await readdir(dataDir.path)).to.deep.equal([]);
  });

  it('takes over from an owner that is gone', async () => {
    await writeLock({ pid: 2 ** 22 + 1, started: '1' });
    await (await lockDataDir(dataDir)).release();
  });

  it('takes over when the process id belongs to another process by now', async () => {
    await writeLock({ started: `${processStart(process.pid)}0` });
    await (await lockDataDir(dataDir)).release();
  });

  it('takes over a lock that a power failure cut short', async () => {
    await writeFile(dataDir.lock, '{"pid":12');
    await (await lockDataDir(dataDir)).release();
  });

  it('lets exactly one of many take over', async () => {
    await writeLock({ pid: 2 ** 22 + 1, started: '1' });
    const attempts = await Promise.allSettled(
      Array.from({ length: 20 }, () => lockDataDir(dataDir)),
    );
    const locks = attempts.filter((attempt) => attempt.status === 'fulfilled');
    expect(locks).to.have.length(1);
    await locks[0]?.value.release();
  });

  it('takes over when another take-over was interrupted long ago', async () => {
    await writeLock({ pid: 2 ** 22 + 1, started: '1' });
    await writeFile(`${dataDir.lock}.takeover`, '');
    await busyOf(lockDataDir(dataDir));
    await utimes(`${dataDir.lock}.takeover`, new Date(0), new Date(0));
    await (await lockDataDir(dataDir)).release();
  });

  it('takes over from another container when that one has long been silent', async () => {
    await writeLock({ scope: 'another boot pid:[1]' });
    await utimes(dataDir.lock, new Date(0), new Date(0));
    await (await lockDataDir(dataDir)).release();
  });

  it('does not take over from another container that shows signs of life', async () => {
    await writeLock({ scope: 'another boot pid:[1]' });
    const now = () => utimes(dataDir.lock, new Date(), new Date());
    const touching = setInterval(now, 200);
    await busyOf(lockDataDir(dataDir)).finally(() => clearInterval(touching));
  });

  it('notices that the directory was taken, and leaves the new lock alone', async () => {
    const lock = await lockDataDir(dataDir);
    await writeLock({});
    await lock.lost;
    await lock.release();
    expect(JSON.parse(await readFile(dataDir.lock, 'utf8'))).to.include({ nonce: 'other' });
  });

  async function writeLock(changes: object): Promise<void> {
    await writeFile(dataDir.lock, JSON.stringify({ ...ownIdentity(), nonce: 'other', ...changes }));
  }
});

describe('the local key file', () => {
  it('is made once, for its owner alone, and read back', async () => {
    expect(await readLocalKek(dataDir)).to.equal(undefined);
    const kek = await createLocalKek(dataDir);
    expect(Buffer.from(kek, 'base64')).to.have.length(32);
    expect(await readLocalKek(dataDir)).to.equal(kek);
    expect(await modeOf(dataDir.kek)).to.equal(0o600);
    expect(await readdir(dataDir.path)).to.deep.equal(['kek']);
  });

  it('is never overwritten, not even by many at once', async () => {
    const attempts = await Promise.allSettled(
      Array.from({ length: 8 }, () => createLocalKek(dataDir)),
    );
    const made = attempts.filter((attempt) => attempt.status === 'fulfilled');
    expect(made).to.have.length(1);
    expect(await readLocalKek(dataDir)).to.equal(made[0]?.value);
  });

  it('stops the start when it is damaged, and does not show what it holds', async () => {
    await writeFile(dataDir.kek, 'half a secret');
    const error = await readLocalKek(dataDir).catch((reason: Error) => reason);
    expect(error).to.be.instanceOf(Error);
    expect((error as Error).message)
      .to.contain(dataDir.kek)
      .and.not.contain('half a secret');
  });
});
