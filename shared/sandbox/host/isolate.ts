/**
 * One isolate: one script version of one tenant. Every run gets a context of its own, the next one is
 * prepared between runs; a script that asks for it gets one that an earlier run has left in order.
 * Nothing of one context is reachable from another, and every Reference is released, because a leaked
 * one pins its context.
 */
import ivm from 'isolated-vm';
import { ISOLATE_MEMORY_MB_MAX } from '../protocol.ts';
import type { SharedBundles } from './module-bundles.ts';
import { ModuleScripts } from './module-scripts.ts';
import { type SyntaxFailure, syntaxFailure } from './syntax-failure.ts';

/** What the code inside asks of the host; text and numbers only, either way. */
export type NativeCall = (
  operation: unknown,
  first: unknown,
  second: unknown,
) => string | undefined;

type Enter = (operation: string, ...values: unknown[]) => void;

/** A context in which the prelude has run and customer code has not. */
export interface PreparedContext {
  readonly context: ivm.Context;
  readonly enter: ivm.Reference<Enter>;
  /** Who answers calls from inside; `undefined`: nobody, the call has no effect. */
  native: NativeCall | undefined;
  /** The script has been loaded here and can be called again. */
  isLoaded: boolean;
}

/** Loaded contexts kept for the next runs: as many as commonly run at once. */
const LOADED_MAX = 8;

const WRAPPER_HEAD = '(function (exports, require, module) {';
const SCRIPT_FILE = 'script.js';

export class ScriptIsolate {
  readonly #isolate: ivm.Isolate;
  readonly #prelude: ivm.Script;
  readonly #script: ivm.Script | SyntaxFailure;
  readonly #modules: ModuleScripts;
  readonly #loaded: PreparedContext[] = [];
  #spare: PreparedContext | undefined;

  /** Throws only when the machine has no memory for another isolate. */
  constructor(bundles: SharedBundles, source: string) {
    this.#isolate = new ivm.Isolate({ memoryLimit: ISOLATE_MEMORY_MB_MAX });
    this.#prelude = this.#isolate.compileScriptSync(bundles.prelude, { filename: 'sandbox.js' });
    this.#script = this.#compile(source);
    this.#modules = new ModuleScripts(this.#isolate, bundles);
  }

  get isDisposed(): boolean {
    return this.#isolate.isDisposed;
  }

  /** Memory that the isolate takes now, garbage included. */
  get bytes(): number {
    const { total_physical_size, externally_allocated_size } =
      this.#isolate.getHeapStatisticsSync();
    return total_physical_size + externally_allocated_size;
  }

  /** `undefined` when the code compiles. */
  get syntaxFailure(): SyntaxFailure | undefined {
    return 'message' in this.#script ? this.#script : undefined;
  }

  /**
   * The spare context, or a new one; with `reuse` one that has the script loaded, if there is any.
   * Nobody else gets it until it is given back. Throws when the isolate is out of memory.
   */
  takeContext(reuse: boolean): PreparedContext {
    const loaded = reuse ? this.#loaded.pop() : undefined;
    if (loaded !== undefined) return loaded;
    const prepared = this.#spare ?? this.#prepare();
    this.#spare = undefined;
    return prepared;
  }

  /** The run is over. `keep`: for another run of this script, if the script is loaded there. */
  giveBack(prepared: PreparedContext, keep: boolean): void {
    prepared.native = undefined;
    if (this.#isolate.isDisposed) return;
    if (keep && prepared.isLoaded && this.#loaded.length < LOADED_MAX) {
      this.#loaded.push(prepared);
      return;
    }
    prepared.enter.release();
    prepared.context.release();
  }

  /** Makes the next context ready, off the path of any run. */
  prepareSpare(): void {
    if (this.#spare !== undefined || this.#loaded.length > 0 || this.#isolate.isDisposed) return;
    try {
      this.#spare = this.#prepare();
    } catch {
      // Out of memory: the next run finds that out and reports it as its own.
    }
  }

  /**
   * The script's function in this context. Text that closes the wrapper runs here, inside the context
   * and under `timeout_ms`, like any other code of the script.
   */
  factory(context: ivm.Context, timeout_ms: number): ivm.Reference<unknown> | undefined {
    if ('message' in this.#script) return undefined;
    return this.#script.runSync(context, { reference: true, timeout: timeout_ms });
  }

  dispose(): void {
    this.#spare = undefined;
    this.#loaded.length = 0;
    if (!this.#isolate.isDisposed) this.#isolate.dispose();
  }

  #prepare(): PreparedContext {
    const context = this.#isolate.createContextSync();
    const enter: ivm.Reference<Enter> = this.#prelude.runSync(context, { reference: true });
    const prepared: PreparedContext = { context, enter, native: undefined, isLoaded: false };
    const native = new ivm.Callback((operation: unknown, first: unknown, second: unknown) => {
      // Modules as well: the run has a look at its clock at every call, V8's does not see them.
      const answer = prepared.native?.(operation, first, second);
      return operation === 'module' ? this.#modules.factory(context, first) : answer;
    });
    enter.applySync(undefined, ['bind', native]);
    return prepared;
  }

  #compile(source: string): ivm.Script | SyntaxFailure {
    try {
      return this.#isolate.compileScriptSync(`${WRAPPER_HEAD}${source}\n})`, {
        filename: SCRIPT_FILE,
        columnOffset: -WRAPPER_HEAD.length,
      });
    } catch (error) {
      return syntaxFailure(this.#whyNotAlone(source) ?? error, source);
    }
  }

  /** What is wrong without our wrapper, whose closing bracket is found where one of theirs is missing. */
  #whyNotAlone(source: string): unknown {
    try {
      this.#isolate.compileScriptSync(source, { filename: SCRIPT_FILE });
      return undefined;
    } catch (error) {
      // It is the wrapper that lets them return.
      const isOurs = error instanceof Error && error.message.startsWith('Illegal return');
      return isOurs ? undefined : error;
    }
  }
}
