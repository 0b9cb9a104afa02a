/**
 * What scripts are run with, in the memory of a host: the prelude, and the bundled npm modules, one copy
 * of their bytes for all threads. Read once before the host gives up its rights; only text that scripts
 * may run anyway.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PRELUDE_FILE } from '../code-files.ts';

/** Crosses to the threads; the bytes are shared, not copied. */
export interface SharedBundles {
  readonly prelude: string;
  readonly bytes: SharedArrayBuffer;
  /** What scripts write in `require` → the file's name and its place among the bytes. */
  readonly places: ReadonlyMap<string, BundlePlace>;
}

export interface BundlePlace {
  readonly file: string;
  readonly start: number;
  readonly end: number;
}

/** Reads the folder that `ensureModuleBundles` made. Throws when a file is missing. */
export function readModuleBundles(folder: string): SharedBundles {
  const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'));
  const modules = Object.entries(index.modules as Record<string, string>).map(([name, file]) => ({
    name,
    file,
    content: readFileSync(join(folder, file)),
  }));
  const size = modules.reduce((sum, { content }) => sum + content.length, 0);
  const bytes = new SharedArrayBuffer(size);
  const places = new Map<string, BundlePlace>();
  let start = 0;
  for (const { name, file, content } of modules) {
    new Uint8Array(bytes).set(content, start);
    places.set(name, { file, start, end: start + content.length });
    start += content.length;
  }
  const prelude = readFileSync(join(folder, PRELUDE_FILE), 'utf8');
  return { prelude, bytes, places };
}

export function bundleText({ bytes }: SharedBundles, { start, end }: BundlePlace): string {
  return Buffer.from(bytes, start, end - start).toString('utf8');
}
