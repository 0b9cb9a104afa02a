/**
 * Bundles the code of sandbox hosts: one file each for the process and for its threads, plain JavaScript.
 * Packages are imported from where they are installed, except for small ones without files of their own.
 */
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { HOST_FILE, PRELUDE_FILE, THREAD_FILE } from '../code-files.ts';
import { preludeSource } from './prelude.ts';
import { withBundler } from './with-bundler.ts';

export interface CodeFile {
  readonly file: string;
  readonly text: string;
}

const HOST = join(import.meta.dirname, '../host');

export async function bundleHost(): Promise<CodeFile[]> {
  const [host, thread] = await withBundler(() =>
    Promise.all([
      bundleCode(join(HOST, 'host.ts'), HOST_FILE),
      bundleCode(join(HOST, 'isolate-thread.ts'), THREAD_FILE),
    ]),
  );
  return [host, thread, { file: PRELUDE_FILE, text: preludeSource() }];
}

async function bundleCode(entry: string, file: string): Promise<CodeFile> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    // Settings of the clone are no part of what the folder is named by.
    tsconfigRaw: '{}',
    plugins: [installedPackages],
    logLevel: 'silent',
  });
  const [output] = outputFiles;
  if (output === undefined) throw new Error(`bundling made nothing of ${entry}`);
  return { file, text: output.text };
}

/** The folder of the bundles may be anywhere, so that names would not be found from there. */
const installedPackages: Plugin = {
  name: 'installed-packages',
  setup({ onResolve }) {
    onResolve({ filter: /^(?:isolated-vm|piscina)$/ }, ({ path }) => ({
      path: import.meta.resolve(path),
      external: true,
    }));
  },
};
