/**
 * Bundled modules inside one isolate: compiled when a script first requires one, then run in each
 * context that does. The factory belongs to the context; its code runs as the script's own, under
 * its limits.
 */
import type ivm from 'isolated-vm';
import { bundleText, type SharedBundles } from './module-bundles.ts';

type Factory = ivm.Dereference<unknown>;

export class ModuleScripts {
  readonly #isolate: ivm.Isolate;
  readonly #bundles: SharedBundles;
  readonly #scripts = new Map<string, ivm.Script>();

  constructor(isolate: ivm.Isolate, bundles: SharedBundles) {
    this.#isolate = isolate;
    this.#bundles = bundles;
  }

  /**
   * The function `(exports, require, module)` of a module, made in `context`; `undefined` when it
   * is not offered, `null` when there is no room for it. Called from inside the isolate, so it must
   * never throw: an error of ours would tell customer code about the host.
   */
  factory(context: ivm.Context, name: unknown): Factory | null | undefined {
    if (typeof name !== 'string') return undefined;
    const place = this.#bundles.places.get(name);
    if (place === undefined) return undefined;
    try {
      const known = this.#scripts.get(place.file);
      const script = known ?? this.#compile(bundleText(this.#bundles, place), place.file);
      this.#scripts.set(place.file, script);
      // Makes a function and runs none, so it takes no time that somebody would have to bound.
      return script.runSync(context, { reference: true }).derefInto({ release: true });
    } catch {
      // Out of memory, or out of stack where the script called.
      return null;
    }
  }

  #compile(text: string, file: string): ivm.Script {
    return this.#isolate.compileScriptSync(`(function (exports, require, module) {${text}\n})`, {
      filename: `modules/${file}`,
    });
  }
}
