/**
 * Node's compile cache of the planes, in `DATA_DIR` unless the operator has one: with it a plane loads
 * neither the compiler of TypeScript nor its 40 MiB of memory, and starts in half the time. Whoever can
 * write there could change what runs, which is why it is not in a shared temporary directory.
 */
import { spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from '../shared/observability/logger.ts';

/** What the planes load, without their entries. */
const MODULES = ['../data-plane/create-data-plane.ts', '../control-plane/create-control-plane.ts'];
/** To be compiled but not run, which would start them. */
const ENTRIES = ['../data-plane/main.ts', '../data-plane/jobs-main.ts', '../control-plane/main.ts'];

const OTHERS = 0o077;

/**
 * The variable for a plane's environment; none before `DATA_DIR` is there, and none when `inherited` has
 * it: whoever set that trusts the folder for this process, too. With `DATABASE_URL` nobody has checked
 * that `dataDir` is a vault that only we may enter, so it is here.
 */
export function compileCacheEnvironment(
  dataDir: string,
  inherited: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  if (inherited.NODE_COMPILE_CACHE) return {};
  const isVault = existsSync(join(dataDir, 'kek')) || existsSync(join(dataDir, 'postgres'));
  const found = isVault ? statSync(dataDir, { throwIfNoEntry: false }) : undefined;
  const isClosed = found?.uid === process.getuid?.() && ((found?.mode ?? OTHERS) & OTHERS) === 0;
  return isClosed ? { NODE_COMPILE_CACHE: join(dataDir, 'compile-cache') } : {};
}

/** Fills an empty cache, so that the first start is like all others. Never throws: it only helps. */
export async function compileAhead(
  dataDir: string,
  inherited: NodeJS.ProcessEnv,
  log: Logger,
): Promise<void> {
  const { NODE_COMPILE_CACHE } = compileCacheEnvironment(dataDir, inherited);
  if (NODE_COMPILE_CACHE === undefined || existsSync(NODE_COMPILE_CACHE)) return;
  const script = [...MODULES.map(runText), compileText(ENTRIES)].join('');
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { NODE_COMPILE_CACHE },
    stdio: 'ignore',
  });
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('exit', resolve);
  });
  if (code !== 0) log.debug({ exit_code: code }, 'nothing compiled ahead');
}

const quotedUrl = (module: string): string => JSON.stringify(new URL(module, import.meta.url).href);

const runText = (module: string): string => `await import(${quotedUrl(module)});`;

/** All imports of a module are compiled before the first of them is run, which ends it here. */
function compileText(modules: readonly string[]): string {
  const imports = modules.map((module) => `import ${quotedUrl(module)};`).join('');
  const text = `import 'data:text/javascript,throw 0';${imports}`;
  const url = `data:text/javascript,${encodeURIComponent(text)}`;
  return `await import(${JSON.stringify(url)}).catch(() => {});`;
}
