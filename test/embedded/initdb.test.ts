/** What a person is told whose first start cannot make a database. */
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { installPostgresBinaries } from '../../embedded/postgres-binaries.ts';
import { runInitdb } from '../../embedded/postgres-process.ts';
import { skipAnywhere } from '../support/skip.ts';

const PASSWORD = 'never-to-be-printed';
/** Nobody's: as a container is given with `--user`. */
const NAMELESS_UID = 1_954_321_000;
const NOBODY_UID = 65_534;

describe('the first start of the embedded Postgres', () => {
  let root: string;
  before(async function () {
    const isLinuxRoot = process.platform === 'linux' && process.getuid?.() === 0;
    if (!isLinuxRoot) skipAnywhere(this, 'only root of Linux can start it as other users');
    root = await fs.mkdtemp(join(tmpdir(), 'sallyport-initdb-'));
  });
  after(async () => {
    if (root !== undefined) await fs.rm(root, { recursive: true });
  });

  /** Its message when it fails; `name`: of its new directory. */
  async function failure(name: string, uid: number, content: readonly string[]): Promise<string> {
    const directory = join(root, name);
    await fs.mkdir(directory, { mode: 0o700 });
    for (const file of content) await fs.writeFile(join(directory, file), '');
    await fs.chown(directory, uid, uid);
    const user = { uid, gid: uid, foreign: true };
    const binaries = await installPostgresBinaries(root, true);
    const place = { binaries, user, dataDirectory: directory, socketDirectory: directory };
    return runInitdb(place, PASSWORD).then(
      () => 'it succeeded',
      ({ message }: Error) => message,
    );
  }

  it('says what to do when its user has no name', async () => {
    expect(await failure('nameless', NAMELESS_UID, [])).to.equal(
      `the embedded Postgres cannot be made by uid ${NAMELESS_UID}, which has no name: ` +
        'add it to /etc/passwd, start as a user that is there, or set DATABASE_URL',
    );
  });

  it('otherwise fails with the last words of initdb', async () => {
    const message = await failure('full', NOBODY_UID, ['something']);
    expect(message).to.match(/^initdb ended with code 1: .*not empty/);
    expect(message).not.to.contain(PASSWORD);
  });
});
