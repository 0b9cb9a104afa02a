/**
 * Bundles the offered npm modules for the sandbox: one CommonJS text each, ES2024, without source
 * maps. What the sandbox has itself stays a `require`; the rest of Node becomes functions that
 * throw when they are called. Runs in the gateway's process before any script; a bundle is never
 * run here.
 */
import { builtinModules, createRequire } from 'node:module';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { OFFERED_MODULES, type OfferedModule } from './module-list.ts';
import { withBundler } from './with-bundler.ts';

export interface Bundle {
  readonly name: string;
  /** CommonJS: it assigns `module.exports`. */
  readonly text: string;
}

const ROOT = join(import.meta.dirname, '../../..');
const adapted = (file: string): string => join(import.meta.dirname, 'adapted', file);
/** What bundled modules ask for, all or one of them → the file of ours they get. */
const REPLACED: Readonly<Record<string, string>> = {
  path: adapted('path.cjs'),
  'https-proxy-agent': adapted('https-proxy-agent.cjs'),
  'openpgp zlib': adapted('no-zlib.cjs'),
};
const PACKAGE = /.*[/\\]node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)/;
/** Parts of Node that the prelude has, or another bundle: one copy of each in a context. */
const ANSWERED_INSIDE = [
  ...['buffer', 'crypto', 'events', 'http', 'https', 'process', 'querystring', 'stream'],
  ...['string_decoder', 'url', 'util'],
];
/** Packages that stand in for parts of Node, and the parts they stand for. */
const STAND_INS: Readonly<Record<string, string>> = {
  ...{ 'safe-buffer': 'buffer', 'safer-buffer': 'buffer', 'process/': 'process' },
  ...{ 'string_decoder/': 'string_decoder', 'readable-stream': 'stream' },
};
const requireHere = createRequire(import.meta.url);

/** All of them, in the order of the list. Throws when one cannot be bundled. */
export function bundleModules(): Promise<Bundle[]> {
  return withBundler(() => Promise.all(OFFERED_MODULES.map(bundleModule)));
}

async function bundleModule({ name, from, member }: OfferedModule): Promise<Bundle> {
  if (member !== undefined) {
    return { name, text: `module.exports = require(${JSON.stringify(from)}).${member};` };
  }
  const { outputFiles } = await build({
    stdin: { contents: `module.exports = require(${JSON.stringify(from)});`, resolveDir: ROOT },
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'neutral',
    // No `browser`, no `node`: each module's plain form; what needs another one is in adapted/.
    mainFields: ['main', 'module'],
    target: 'es2024',
    charset: 'ascii',
    // Names are kept: error classes tell who they are by name.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'eof',
    // Not spelled in one piece: the only reader of the environment is config/environment.ts.
    define: { [['process', 'env', 'NODE_ENV'].join('.')]: '"production"', __dirname: '"/"' },
    plugins: [partsOfNode],
    logLevel: 'silent',
  });
  const [output] = outputFiles;
  if (output === undefined) throw new Error(`bundling made nothing of ${name}`);
  return { name, text: output.text };
}

const partsOfNode: Plugin = {
  name: 'parts-of-node',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^[^./]/ }, ({ path, kind, importer }) => {
      if (kind === 'entry-point') return undefined;
      const plain = STAND_INS[path] ?? path.replace(/^node:/, '').replace(/\/$/, '');
      if (ANSWERED_INSIDE.includes(plain)) return { path: plain, external: true };
      const replacement = REPLACED[plain] ?? REPLACED[`${PACKAGE.exec(importer)?.[1]} ${plain}`];
      if (replacement !== undefined) return { path: replacement };
      return builtinModules.includes(plain) ? { path: plain, namespace: 'absent' } : undefined;
    });
    onLoad({ filter: /.*/, namespace: 'absent' }, ({ path }) => ({ contents: absent(path) }));
  },
};

/** A part of Node that scripts have not: its functions are there, as modules take them at load. */
function absent(name: string): string {
  const exported: object = requireHere(name);
  const functions = Object.entries(exported).filter(([, value]) => typeof value === 'function');
  const members = functions.map(([key]) => {
    const message = `${name}.${key} is not available in a sandbox.`;
    return `${JSON.stringify(key)}: function () { throw new Error(${JSON.stringify(message)}); }`;
  });
  return `module.exports = { ${members.join(',\n')} };`;
}
