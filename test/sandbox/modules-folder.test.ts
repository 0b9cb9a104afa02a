/** Where bundled modules are kept: built once, whole or not at all, and by nobody but us. */
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import {
  areIntact,
  ensureModuleBundles,
} from '../../shared/sandbox/modules/ensure-module-bundles.ts';
import { ensurePrivateFolder } from '../../shared/sandbox/modules/private-folder.ts';
import { startSandbox } from '../support/sandbox.ts';
import { skipAnywhere, skipUnlessLinux } from '../support/skip.ts';

const STRANGER = 65_533;
/** In what a folder or file may be wrong that only root can bring about. */
const OF_STRANGERS = /\banother (?:owner|user)$/;

/** Nobody else may give what is theirs away. */
function needRoot(context: Mocha.Context, what: string): void {
  const isPossible = process.getuid?.() === 0 || !OF_STRANGERS.test(what);
  if (!isPossible) skipAnywhere(context, 'only root makes a folder of another owner');
}

describe('the folder of bundled modules', () => {
  let built: string;
  let parent: string;
  before(async () => {
    built = await ensureModuleBundles();
  });
  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), 'sallyport-modules-test-'));
  });
  afterEach(() => rmSync(parent, { recursive: true, force: true }));

  const ensure = (): Promise<string> => ensureModuleBundles(join(parent, 'modules'));
  const inodes = (path: string): number[] =>
    readdirSync(path).map((name) => statSync(join(path, name)).ino);

  it('is built once and found again as it is', async () => {
    const path = await ensure();
    const before = inodes(path);
    expect(before).to.have.length.above(20);
    expect(await ensure()).to.equal(path);
    expect(inodes(path)).to.deep.equal(before);
    expect(readdirSync(dirname(path))).to.deep.equal([basename(path)]);
  });

  it('leaves no process behind that built it', async function () {
    skipUnlessLinux(this, 'child processes are read from /proc');
    await ensure();
    const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ');
    const commands = children
      .filter((pid) => pid !== '' && existsSync(`/proc/${pid}/cmdline`))
      .map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    expect(commands.filter((command) => command.includes('esbuild'))).to.deep.equal([]);
  });

  it('can be read by a host of another user, and written by none', async () => {
    const umask = process.umask(0o077);
    const path = await ensure().finally(() => process.umask(umask));
    expect(statSync(path).mode & 0o777).to.equal(0o755);
    for (const name of readdirSync(path)) {
      expect(statSync(join(path, name)).mode & 0o777, name).to.equal(0o644);
    }
  });

  it('holds a module as it was built, with its licence', async () => {
    const lodash = readFileSync(join(await ensure(), 'lodash.js'), 'utf8');
    expect(lodash).to.include('Released under MIT license');
    expect(lodash).not.to.include('sourceMappingURL');
  });

  it('is made by two at once without quarrel', async () => {
    const [left, right] = await Promise.all([ensure(), ensure()]);
    expect(left).to.equal(right);
    expect(readdirSync(dirname(left))).to.deep.equal([basename(left)]);
    expect(await ensure()).to.equal(left);
  });

  /** In the place where `ensure` looks. */
  function copyOfBuilt(): string {
    const path = join(parent, 'modules', basename(built));
    mkdirSync(dirname(path));
    cpSync(built, path, { recursive: true });
    chmodSync(path, 0o755);
    return path;
  }

  const REBUILT = ['a changed module', 'a link in its place'];
  const PLANTED = 'module.exports = "planted";';
  const spoilers: [string, (path: string) => void][] = [
    ['a changed module', (path) => appendFileSync(join(path, 'lodash.js'), PLANTED)],
    ['a missing module', (path) => rmSync(join(path, 'lodash.js'))],
    ['a file that is none of ours', (path) => writeFileSync(join(path, 'fs.js'), PLANTED)],
    ['a broken index', (path) => writeFileSync(join(path, 'index.json'), '{"modules":{}')],
    ['an empty index', (path) => writeFileSync(join(path, 'index.json'), '{"modules":{}}')],
    ['a module that others can write', (path) => chmodSync(join(path, 'lodash.js'), 0o666)],
    ['others who can write into it', (path) => chmodSync(path, 0o777)],
    [
      'a link in its place',
      (path) => {
        renameSync(path, `${path}.elsewhere`);
        symlinkSync(`${path}.elsewhere`, path);
      },
    ],
    [
      'a link to a module in its place',
      (path) => {
        renameSync(join(path, 'lodash.js'), `${path}.lodash.js`);
        symlinkSync(`${path}.lodash.js`, join(path, 'lodash.js'));
      },
    ],
    ['another owner', (path) => chownSync(path, STRANGER, STRANGER)],
    ['a module of another owner', (path) => chownSync(join(path, 'lodash.js'), STRANGER, STRANGER)],
  ];
  for (const [what, spoil] of spoilers) {
    it(`is not taken when it has ${what}`, async function () {
      needRoot(this, what);
      const path = copyOfBuilt();
      expect(await areIntact(path)).to.equal(true);
      spoil(path);
      expect(await areIntact(path)).to.equal(false);
    });
  }

  it('is not taken from a folder that others can write to', async () => {
    const path = copyOfBuilt();
    chmodSync(dirname(path), 0o777);
    expect(await areIntact(path)).to.equal(false);
  });

  for (const [what, spoil] of spoilers.filter(([what]) => REBUILT.includes(what))) {
    it(`is built anew when it has ${what}`, async () => {
      const path = copyOfBuilt();
      const before = lstatSync(path).ino;
      spoil(path);
      expect(await ensure()).to.equal(path);
      expect(lstatSync(path).ino).not.to.equal(before);
      expect(await areIntact(path)).to.equal(true);
      expect(readdirSync(dirname(path)).filter((name) => name.startsWith('.'))).to.deep.equal([]);
    });
  }

  it('is not made in a folder that others can write to', async () => {
    mkdirSync(join(parent, 'modules'));
    chmodSync(join(parent, 'modules'), 0o777);
    const failure = await ensure().catch((error: Error) => error.message);
    expect(failure).to.match(/only this user can write to/);
  });

  it('may be anywhere the host is told', async () => {
    const modules_folder = join(parent, 'modules');
    const sandbox = await startSandbox({ modules_folder });
    try {
      expect(
        await sandbox.value("module.exports = () => require('lodash').chunk([1, 2, 3], 2);"),
      ).to.deep.equal([[1, 2], [3]]);
    } finally {
      await sandbox.supervisor.close();
    }
  });

  const LOSSES: [string, (path: string) => () => void][] = [
    [
      'is gone',
      (path) => {
        renameSync(path, `${path}.away`);
        return () => renameSync(`${path}.away`, path);
      },
    ],
    [
      'others can write to',
      (path) => {
        chmodSync(path, 0o777);
        return () => chmodSync(path, 0o755);
      },
    ],
  ];
  for (const [what, lose] of LOSSES) {
    it(`starts no host from one that ${what}, blames nobody, and goes on when it is as it was`, async () => {
      const failures: unknown[] = [];
      const sandbox = await startSandbox({
        modules_folder: dirname(copyOfBuilt()),
        onHostFailed: (error) => failures.push(error),
      });
      const { supervisor } = sandbox;
      const source = `module.exports = ({ args }) => {
        if (args === 'abort') { const m = new Map(); for (let i = 0; ; i++) m.set(i, [i]); }
        return 'well'; };`;
      const script = { tenant_id: 'tenant', script_version: '1', source };
      const run = async (args: string) =>
        (await supervisor.run({ ...script, args: JSON.stringify(args) })).result;
      try {
        // From now on it runs in the quarantine host, which is started for it.
        expect((await run('abort')).kind).to.be.oneOf(['crashed', 'memory']);
        const restore = lose(await ensure());
        while (supervisor.status().pids.length > 0) {
          for (const pid of supervisor.status().pids) process.kill(pid, 'SIGKILL');
          await delay(20);
        }
        const busy = { kind: 'busy', scope: 'machine' };
        for (let time = 0; time < 5; time += 1) expect(await run('well')).to.deep.equal(busy);
        const other = await sandbox.result(source, { tenant_id: 'other', args: '"well"' });
        expect(other).to.deep.equal(busy);
        expect(supervisor.status().pids).to.deep.equal([]);
        // One that was just starting has been killed, too: the next is begun after a pause.
        while (failures.length === 0) await delay(20);
        expect(String(failures[0]))
          .to.match(/code of sandbox hosts is gone/)
          .and.not.contain('/');
        restore();
        while ((await run('well')).kind === 'busy') await delay(50);
        expect(await run('well')).to.deep.equal({ kind: 'ok', value: '"well"' });
      } finally {
        await supervisor.close();
      }
    });
  }

  describe('in the temporary folder of the system', () => {
    it('is made for this user alone, and found again', async () => {
      const path = join(parent, 'own');
      expect(await ensurePrivateFolder(path)).to.equal(path);
      expect(statSync(path).mode & 0o777).to.equal(0o700);
      expect(await ensurePrivateFolder(path)).to.equal(path);
    });

    const planters: [string, (path: string) => void][] = [
      ['others can read', (path) => mkdirSync(path, { mode: 0o755 })],
      ['is a link', (path) => symlinkSync(parent, path)],
      ['is a file', (path) => writeFileSync(path, '')],
      [
        'is of another user',
        (path) => {
          mkdirSync(path, { mode: 0o700 });
          chownSync(path, STRANGER, STRANGER);
        },
      ],
    ];
    for (const [what, plant] of planters) {
      it(`is refused when what has its name ${what}`, async function () {
        needRoot(this, what);
        const path = join(parent, 'own');
        plant(path);
        const failure = await ensurePrivateFolder(path).catch((error: Error) => error.message);
        expect(failure).to.match(/only this user can read and write/);
      });
    }
  });
});
