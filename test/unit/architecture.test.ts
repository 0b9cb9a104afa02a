/** The rules of the house about who may import whom, read from the sources themselves. */
import { globSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { NEWEST_MIGRATION } from '../../shared/postgres/schema.ts';

const ROOT = join(import.meta.dirname, '../..');
const ROOMS = ['control-plane', 'data-plane', 'shared', 'embedded', 'cli', 'config', 'bench'];
const LINES_MAX = 300;

interface Source {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
  /** Package names, `node:` modules, and paths from the root of the repository. */
  readonly imports: readonly string[];
}

/** Static, side-effect and dynamic imports, re-exports, and `require`; the formatter fixes the quotes. */
const IMPORT =
  /^(?:import|export)\s(?:[^'";]*?\sfrom\s)?'([^']+)'|\b(?:import|require)\(\s*'([^']+)'/gm;

function readSource(path: string): Source {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const imports = Array.from(text.matchAll(IMPORT), ([, fixed, dynamic]) => fixed ?? dynamic ?? '');
  const resolved = imports.map((name) => (name.startsWith('.') ? join(dirname(path), name) : name));
  return { path, text, imports: resolved };
}

/** Peers of the bench bring packages of their own. */
const SOURCES = ROOMS.flatMap((room) => globSync(`${room}/**/*.{ts,js}`, { cwd: ROOT }))
  .filter((path) => !path.includes('node_modules/'))
  .sort()
  .map(readSource);

/** `file → import` of everything in `folder` that imports what `isForbidden` says. */
function violations(
  folder: string,
  isForbidden: (name: string, path: string) => boolean,
): string[] {
  return SOURCES.filter(({ path }) => path.startsWith(folder)).flatMap(({ path, imports }) =>
    imports.filter((name) => isForbidden(name, path)).map((name) => `${path} → ${name}`),
  );
}

const startsWithAny = (name: string, prefixes: readonly string[]): boolean =>
  prefixes.some((prefix) => name.startsWith(prefix));

describe('the architecture', () => {
  it('is read from all rooms, with the imports of each file', () => {
    const rooms = new Set(SOURCES.map(({ path }) => path.split('/')[0]));
    expect([...rooms]).to.include.members(['control-plane', 'data-plane', 'shared', 'embedded']);
    const entry = SOURCES.find(({ path }) => path === 'data-plane/main.ts');
    expect(entry?.imports).to.include('config/environment.ts');
    const wiring = SOURCES.find(({ path }) => path === 'data-plane/create-data-plane.ts');
    expect(wiring?.imports).to.include('package.json');
    const broken = SOURCES.find(({ path }) => path === 'data-plane/routes/list-tokens.ts');
    expect(broken?.imports).to.include('shared/http/list-parameters.ts');
    const lazy = readSource('test/support/root-hooks.ts');
    expect(lazy.imports).to.deep.equal(['test/support/test-server.ts']);
  });

  const ABOVE_SHARED = ['control-plane/', 'data-plane/', 'embedded/', 'cli/', 'test/', 'bench/'];
  const arrows: [string, readonly string[]][] = [
    ['shared/', [...ABOVE_SHARED, 'config/']],
    ['control-plane/', ['data-plane/', 'embedded/', 'cli/', 'test/', 'bench/']],
    ['data-plane/', ['control-plane/', 'embedded/', 'cli/', 'test/', 'bench/']],
    // Only for what the types of its variables mean.
    ['config/', ABOVE_SHARED],
    ['embedded/', ['data-plane/', 'cli/', 'test/', 'bench/']],
    ['cli/', ['data-plane/', 'test/', 'bench/']],
  ];
  for (const [folder, forbidden] of arrows) {
    it(`lets ${folder} import nothing of ${forbidden.join(', ')}`, () => {
      expect(violations(folder, (name) => startsWithAny(name, forbidden))).to.deep.equal([]);
    });
  }

  it('imports the settings as values only where a process begins', () => {
    const entries =
      /^(?:[^/]+\/(?:jobs-)?main|embedded\/(?:start|planes)|(?:cli|bench)\/.+|config\/required-settings)\.ts$/;
    const readers = SOURCES.filter(({ path, imports, text }) => {
      const typeOnly = /^import type [^;]*config\/environment\.ts';$/m.test(text);
      return imports.includes('config/environment.ts') && !typeOnly && !entries.test(path);
    });
    expect(readers.map(({ path }) => path)).to.deep.equal([]);
  });

  it('reads process.env in one place, and hands it whole from where a process begins', () => {
    const touching = SOURCES.filter(
      ({ path, text }) =>
        withoutComments(text).includes('process.env') && path !== 'config/environment.ts',
    );
    for (const { path, text } of touching) {
      expect(path).to.match(
        /^(?:[^/]+\/(?:jobs-)?main|embedded\/start|config\/require-node-24)\.(?:ts|js)$/,
      );
      expect(withoutComments(text), path).not.to.match(/process\.env[.[]/);
    }
  });

  describe('the pure modules', () => {
    const PURE = [
      ...['shared/api/', 'shared/access/', 'shared/expressions/', 'shared/errors.ts'],
      ...['shared/merge-patch.ts', 'shared/json-', 'shared/tokens/token-types.ts'],
    ];
    /** Hashes and random digits of filters are computed, not fetched. */
    const PURE_BUILTINS = ['node:crypto'];
    const PURE_PACKAGES = [
      'ajv',
      'ajv-formats',
      'typebox',
      'json-p3',
      'credit-card-type',
      'lru-cache',
    ];
    const PURE_NEIGHBOURS = ['shared/tokens/', 'shared/api-keys.ts', 'shared/near-name.ts'];

    for (const folder of PURE) {
      it(`${folder} imports no I/O`, () => {
        const impure = violations(folder, (name) => {
          if (isBuiltin(name)) return !PURE_BUILTINS.includes(name);
          if (name.startsWith('shared/'))
            return !startsWithAny(name, [...PURE, ...PURE_NEIGHBOURS]);
          return !PURE_PACKAGES.includes(name.split('/')[0] ?? '');
        });
        expect(impure).to.deep.equal([]);
      });
    }

    it('reach no I/O through what they import either', () => {
      const reached = reachableFrom(SOURCES.filter(({ path }) => startsWithAny(path, PURE)));
      const impure = reached.flatMap(({ path, imports }) =>
        imports
          .filter((name) => isBuiltin(name) && !PURE_BUILTINS.includes(name))
          .map((name) => `${path} → ${name}`),
      );
      expect(impure).to.deep.equal([]);
    });
  });

  describe('what runs inside a sandbox host', () => {
    const HOST = 'shared/sandbox/host/';
    /** What both ends of the pipe say; the codec of it imports types only. */
    const BOTH_ENDS = ['protocol', 'frames', 'code-files'].map(
      (name) => `shared/sandbox/${name}.ts`,
    );
    /** `crypto`: scripts bring the keys of what they compute; this process has none. */
    const BUILTINS = ['crypto', 'fs', 'net', 'path', 'url', 'worker_threads'].map(
      (name) => `node:${name}`,
    );
    const PACKAGES = ['isolated-vm', 'lru-cache', 'piscina'];

    it('imports only the protocol and its own folder', () => {
      const allowed = [...BOTH_ENDS, ...BUILTINS, ...PACKAGES];
      const strangers = violations(HOST, (name, path) => {
        // The prelude's files see a `require` of their own, which knows no module of Node.
        if (path.startsWith(`${HOST}prelude/`)) return false;
        return !name.startsWith(HOST) && !allowed.includes(name);
      });
      expect(strangers).to.deep.equal([]);
      const reached = violations('shared/sandbox/', (_name, path) => BOTH_ENDS.includes(path));
      expect(reached).to.deep.equal(['shared/sandbox/frames.ts → node:stream']);
    });

    it('is imported by nothing outside: it is started as a process', () => {
      const importers = violations(
        '',
        (name, path) => name.startsWith(HOST) && !path.startsWith(HOST),
      );
      expect(importers).to.deep.equal([]);
    });

    it('is the only place where customer code meets an engine', () => {
      const engines = violations('', (name, path) => {
        const engine = name === 'isolated-vm' || name === 'node:vm';
        return engine && !path.startsWith(HOST);
      });
      expect(engines).to.deep.equal([]);
    });

    it('has a prelude that names no module of Node', () => {
      const files = globSync(`${HOST}prelude/*.cjs`, { cwd: ROOT }).map(readSource);
      const own = files.map(({ path }) => path.slice(`${HOST}prelude/`.length, -'.cjs'.length));
      const required = files.flatMap(({ imports }) => imports);
      expect(required).not.to.have.length(0);
      expect(required.filter((name) => !own.includes(name))).to.deep.equal([]);
    });
  });

  it('names every Node module by its node: address', () => {
    expect(violations('', (name) => isBuiltin(name) && !name.startsWith('node:'))).to.deep.equal(
      [],
    );
  });

  it('runs the tests of every folder', () => {
    const runner = readFileSync(join(ROOT, 'test/run-all.ts'), 'utf8');
    const lanes = Array.from(
      runner.matchAll(/'test\/\{?([\w,]+)\}?\//g),
      ([, names = '']) => names,
    );
    const run = lanes.flatMap((names) => names.split(',')).sort();
    const folders = globSync('test/*/**/*.test.ts', { cwd: ROOT }).map(
      (path) => path.split('/')[1],
    );
    expect(run).to.deep.equal([...new Set(folders)].sort());
  });

  it(`has no file of more than ${LINES_MAX} lines, nor do its tests`, () => {
    const tests = globSync('test/**/*.ts', { cwd: ROOT }).map(readSource);
    expect(tests).not.to.have.length(0);
    const all = [...SOURCES, ...tests];
    const long = all.filter(({ text }) => text.split('\n').length - 1 > LINES_MAX);
    expect(long.map(({ path }) => path)).to.deep.equal([]);
  });

  it('asks for the newest migration that there is', () => {
    const names = SOURCES.filter(({ path }) => path.startsWith('control-plane/migrations/'))
      .map(({ path }) => path.replace(/^.*\/|\.ts$/g, ''))
      .sort();
    expect(names.at(-1)).to.equal(NEWEST_MIGRATION);
    names.forEach((name, index) => {
      expect(name).to.match(new RegExp(`^${String(index + 1).padStart(4, '0')}-[a-z-]+$`));
    });
  });

  it('cites chapters of the design that are there', () => {
    const design = readFileSync(join(ROOT, 'docs/design.md'), 'utf8');
    const chapters = new Set(Array.from(design.matchAll(/^## (\d+)\. /gm), ([, number]) => number));
    const cited = SOURCES.flatMap(({ path, text }) =>
      Array.from(text.matchAll(/design sections? (\d+)/gi), ([, number]) => ({ path, number })),
    );
    expect(cited).not.to.have.length(0);
    expect(cited.filter(({ number }) => !chapters.has(number))).to.deep.equal([]);
  });
});

function reachableFrom(start: readonly Source[]): Source[] {
  const byPath = new Map(SOURCES.map((source) => [source.path, source]));
  const reached = new Set(start);
  for (const { imports } of reached) {
    for (const name of imports) {
      const next = byPath.get(name);
      if (next !== undefined) reached.add(next);
    }
  }
  return [...reached];
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
}
