/**
 * The disk of the database is full: what must write is refused with 503, what only reads is served, and
 * when there is room again nothing has to be restarted. The disk is a tmpfs, for which it takes root.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createApplication } from '../security/planes.ts';
import { type Answer, call } from '../support/http-call.ts';
import { skipAnywhere } from '../support/skip.ts';
import { type Installation, install } from './installation.ts';

/** The cluster, its log and the programs' cache, and not much besides. */
const DISK = 'size=320m,mode=755';
/** Of incompressible text: every write needs room. */
const DATA_BYTES = 60_000;
const WRITES_MAX = 200;

describe('a full disk of the database', function () {
  this.timeout(90_000);
  let disk: string | undefined;
  let installation: Installation;
  let key: string;

  before(async function () {
    disk = await mountDisk();
    if (disk === undefined) skipAnywhere(this, 'a tmpfs may not be mounted here');
    installation = await install({ SANDBOX_HOSTS: '0' }, disk);
    const { managementKey } = installation;
    ({ key } = await createApplication(installation.baseUrl(), { managementKey }));
  });
  after(async () => {
    await installation?.remove();
    if (disk === undefined) return;
    execFileSync('umount', [disk]);
    await rm(disk, { recursive: true });
  });

  const write = (id: string): Promise<Answer<unknown>> => {
    const data = Array.from({ length: DATA_BYTES / 10 }, () =>
      Math.random().toString(36).slice(2, 12),
    ).join('');
    return call(installation.baseUrl(), 'POST /tokens', {
      key,
      json: { id, type: 'token', data },
    });
  };
  const read = (id: string) => call(installation.baseUrl(), `GET /tokens/${id}`, { key });

  it('refuses writes with 503, serves reads, and recovers by itself', async () => {
    const stored: string[] = [];
    const store = async (id: string): Promise<number> => {
      const { status, headers } = await write(id);
      if (status === 201) stored.push(id);
      else expect([status, headers.get('retry-after')]).to.deep.equal([503, '1']);
      return status;
    };
    expect(await store('before')).to.equal(201);
    const dataPlane = await installation.pidOf('data-plane');
    const postmaster = await installation.pidOf('postmaster');
    const filler = await fill(disk as string);
    const statuses: number[] = [];
    // What is left in files that exist already is used up first.
    while (statuses.length < WRITES_MAX && statuses.slice(-3).join() !== '503,503,503') {
      statuses.push(await store(`full-${statuses.length}`));
    }
    expect(statuses.slice(-3)).to.deep.equal([503, 503, 503]);
    for (const id of stored) expect((await read(id)).status, id).to.equal(200);
    await rm(filler);
    expect(await store('after')).to.equal(201);
    for (const id of stored) expect((await read(id)).status, id).to.equal(200);
    expect([
      await installation.pidOf('data-plane'),
      await installation.pidOf('postmaster'),
    ]).to.deep.equal([dataPlane, postmaster]);
  });
});

/** The directory it is mounted on; `undefined` where that is not allowed. */
async function mountDisk(): Promise<string | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', DISK, 'tmpfs', directory], { stdio: 'ignore' });
    return directory;
  } catch {
    await rm(directory, { recursive: true });
    return undefined;
  }
}

/** Takes all the room there is; removing the file gives it back. */
async function fill(disk: string): Promise<string> {
  const path = join(disk, 'filler');
  const file = await open(path, 'w');
  const piece = Buffer.alloc(1024 * 1024, 1);
  for (;;) {
    const { bavail, bsize } = await statfs(disk);
    if (bavail === 0) break;
    await file.write(piece, 0, Math.min(piece.length, bavail * bsize));
  }
  await file.close();
  return path;
}
