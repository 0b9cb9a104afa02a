/** Files of the sandbox's prelude as they are, without a sandbox: for what in them is only computing. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileFunction } from 'node:vm';

const FOLDER = join(import.meta.dirname, '../../shared/sandbox/host/prelude');

/** What `name.cjs` exports. The files that it requires are loaded with it, each once. */
export function loadPrelude(name: string): unknown {
  const loaded = new Map<string, { exports: unknown }>();
  const require = (file: string): unknown => {
    const known = loaded.get(file);
    if (known !== undefined) return known.exports;
    const module = { exports: {} };
    loaded.set(file, module);
    const text = `'use strict';${readFileSync(join(FOLDER, `${file}.cjs`), 'utf8')}`;
    compileFunction(text, ['exports', 'require', 'module'])(module.exports, require, module);
    return module.exports;
  };
  return require(name);
}
