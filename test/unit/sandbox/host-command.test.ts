/** What a sandbox host may read: our own code, wherever an installation has put it. */
import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readablePaths } from '../../../shared/sandbox/host-command.ts';

describe('what a sandbox host may read', () => {
  let root: string;
  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'sallyport-test-')));
  });
  afterEach(() => rm(root, { recursive: true }));

  it('is the packages and what names them', async () => {
    await mkdir(join(root, 'node_modules'));
    expect(readablePaths(root)).to.deep.equal([`${root}/node_modules/`, `${root}/package.json`]);
  });

  it('is the packages where they really are, too', async () => {
    await mkdir(join(root, 'volume/node_modules'), { recursive: true });
    await symlink(join(root, 'volume/node_modules'), join(root, 'node_modules'));
    expect(readablePaths(root)).to.deep.equal([
      `${root}/node_modules/`,
      `${root}/volume/node_modules/`,
      `${root}/package.json`,
    ]);
  });
});
