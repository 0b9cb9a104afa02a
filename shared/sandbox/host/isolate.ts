/**
 * One isolate: one script version of one tenant. Every run gets a context of its own; the next one is
 * prepared between runs. Nothing of one context is reachable from another, and every Reference is
 * released, because a leaked one pins its context.
 */
import ivm from 'isolated-vm';
import { ISOLATE_MEMORY_MB_MAX } from '../protocol.ts';

/** What the code inside asks of the host; text and numbers only, either way. */
export type NativeCall = (
  operation: unknown,
  first: unknown,
  second: unknown,
) => string | undefined;

type Enter = (operation: string, ...values: unknown[]) => void;

export interface SyntaxFailure {
  readonly message: string;
  readonly line: number | undefined;
}

/** A context in which the prelude has run and customer code has not. */
export interface PreparedContext {
  readonly context: ivm.Context;
  readonly enter: ivm.Reference<Enter>;
  /** Who answers calls from inside; `undefined`: nobody, the call has no effect. */
  native: NativeCall | undefined;
}

const WRAPPER_HEAD = '(function (exports, require, module) {';
/** The names V8 gives a syntax error's place: `[script.js:3:14]`. */
const PLACE = /\[script\.js:(\d+)/;

export class ScriptIsolate {
  readonly #isolate: ivm.Isolate;
  readonly #prelude: ivm.Script;
  readonly #script: ivm.Script | SyntaxFailure;
  #spare: PreparedContext | undefined;

  /** Throws only when the machine has no memory for another isolate. */
  constructor(prelude: string, source: string) {
    this.#isolate = new ivm.Isolate({ memoryLimit: ISOLATE_MEMORY_MB_MAX });
    this.#prelude = this.#isolate.compileScriptSync(prelude, { filename: 'sandbox.js' });
    this.#script = this.#compile(source);
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

  /** The spare context, or a new one. Throws when the isolate is out of memory. */
  takeContext(): PreparedContext {
    const prepared = this.#spare ?? this.#prepare();
    this.#spare = undefined;
    return prepared;
  }

  /** Makes the next context ready, off the path of any run. */
  prepareSpare(): void {
    if (this.#spare !== undefined || this.#isolate.isDisposed) return;
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
    if (!this.#isolate.isDisposed) this.#isolate.dispose();
  }

  #prepare(): PreparedContext {
    const context = this.#isolate.createContextSync();
    const enter: ivm.Reference<Enter> = this.#prelude.runSync(context, { reference: true });
    const prepared: PreparedContext = { context, enter, native: undefined };
    const native = new ivm.Callback((operation: unknown, first: unknown, second: unknown) =>
      prepared.native?.(operation, first, second),
    );
    enter.applySync(undefined, ['bind', native]);
    return prepared;
  }

  #compile(source: string): ivm.Script | SyntaxFailure {
    try {
      return this.#isolate.compileScriptSync(`${WRAPPER_HEAD}${source}\n})`, {
        filename: 'script.js',
        columnOffset: -WRAPPER_HEAD.length,
      });
    } catch (error) {
      const { message, stack = '' } = error instanceof Error ? error : new Error('unknown');
      const line = PLACE.exec(`${message}\n${stack}`)?.[1];
      // "Unexpected token 'x'" quotes code, which is not token data; the place is told apart.
      const text = message.replace(/ \[script\.js:[\d:]+\]$/, '');
      // An open bracket is found missing on the wrapper's last line, which is not the customer's.
      const lines = source.split('\n').length;
      return {
        message: text,
        line: line === undefined ? undefined : Math.min(Number(line), lines),
      };
    }
  }
}

/** Gives a used context back. */
export function releaseContext(prepared: PreparedContext): void {
  prepared.native = undefined;
  prepared.enter.release();
  prepared.context.release();
}
