/**
 * One run of a script in a context of its own: enters the context, keeps its timers, cuts it at its
 * deadline, and ends exactly once. What comes from inside is text or a number, or it is ignored.
 */
import {
  COMPUTE_MS_MAX,
  CONSOLE_BYTES_MAX,
  type ConsoleLine,
  type Ending,
  monotonicNow,
  RESULT_BYTES_MAX,
  type RunMessage,
  TIMERS_MAX,
} from '../protocol.ts';
import { answerUrl } from './answer-url.ts';
import { type PreparedContext, releaseContext, type ScriptIsolate } from './isolate.ts';

export interface Ended {
  readonly ending: Ending;
  /** JSON text, or the name of a module. */
  readonly text: string;
  readonly console: readonly ConsoleLine[];
}

/** How code inside may say that it ended; the other ends are for V8 and the clock to say. */
const ENDINGS = ['ok', 'error', 'type', 'unknown_module', 'result_too_large'] as const;

const NEVER_SETTLES = JSON.stringify({
  name: 'Error',
  errors: { error: ['The function returned a promise that nothing can settle any more.'] },
});
const FAILED_OUTSIDE = JSON.stringify({
  name: 'Error',
  errors: { error: ['The code failed outside of its function.'] },
});

export class Invocation {
  readonly #isolate: ScriptIsolate;
  readonly #run: RunMessage;
  readonly #onEnd: (ended: Ended) => void;
  readonly #onSegment: (id: number) => void;
  readonly #timers = new Map<number, NodeJS.Timeout>();
  readonly #console: ConsoleLine[] = [];
  #consoleLeft = CONSOLE_BYTES_MAX;
  #computeLeft_ms = COMPUTE_MS_MAX;
  #context: PreparedContext | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #outcome: { ending: Ending; text: string } | undefined;

  /** `onSegment`: called with the run's id before customer code holds the thread, with 0 after. */
  constructor(
    isolate: ScriptIsolate,
    run: RunMessage,
    onSegment: (id: number) => void,
    onEnd: (ended: Ended) => void,
  ) {
    this.#isolate = isolate;
    this.#run = run;
    this.#onSegment = onSegment;
    this.#onEnd = onEnd;
  }

  /** `request`: JSON text of what the script's function gets. */
  start(request: string): void {
    const failure = this.#isolate.syntaxFailure;
    if (failure !== undefined) {
      this.#end('syntax', JSON.stringify(failure));
      return;
    }
    this.#deadline = setTimeout(
      () => this.#end('timeout', ''),
      this.#run.ends_at_ms - monotonicNow(),
    );
    this.#segment((prepared, timeout_ms) => {
      const factory = this.#isolate.factory(prepared.context, timeout_ms);
      if (factory === undefined) return;
      const values = ['load', factory.derefInto({ release: true }), this.#run.purpose, request];
      prepared.enter.applySync(
        undefined,
        values as Parameters<typeof prepared.enter.applySync>[1],
        {
          timeout: timeout_ms,
        },
      );
    });
  }

  /** Runs customer code for as long as this run may still compute, then looks what came of it. */
  #segment(work: (prepared: PreparedContext, timeout_ms: number) => void): void {
    const started = monotonicNow();
    const left_ms = Math.ceil(Math.min(this.#run.ends_at_ms - started, this.#computeLeft_ms));
    if (left_ms <= 0) {
      this.#end('timeout', '');
      return;
    }
    this.#onSegment(this.#run.id);
    try {
      work(this.#enterContext(), left_ms);
    } catch (error) {
      this.#outcome = this.#outcomeOf(error);
    } finally {
      this.#onSegment(0);
    }
    this.#computeLeft_ms -= monotonicNow() - started;
    if (this.#isolate.isDisposed) this.#end('memory', '');
    else if (this.#outcome !== undefined) this.#end(this.#outcome.ending, this.#outcome.text);
    else if (this.#timers.size === 0) this.#end('error', NEVER_SETTLES);
  }

  #enterContext(): PreparedContext {
    this.#context ??= this.#isolate.takeContext();
    this.#context.native = (operation, first, second) => this.#answer(operation, first, second);
    return this.#context;
  }

  /** What customer code throws stays inside; out here come V8's own ends. */
  #outcomeOf(error: unknown): { ending: Ending; text: string } {
    if (this.#isolate.isDisposed) return { ending: 'memory', text: '' };
    const message = error instanceof Error ? error.message : '';
    if (message === 'Script execution timed out.') return { ending: 'timeout', text: '' };
    return { ending: 'error', text: FAILED_OUTSIDE };
  }

  #answer(operation: unknown, first: unknown, second: unknown): string | undefined {
    if (operation === 'url') return answerUrl(first, second);
    if (operation === 'done') this.#take(first, second);
    else if (operation === 'log') this.#log(first, second);
    else if (operation === 'timer') this.#startTimer(first, second);
    else if (operation === 'clear') this.#clearTimer(first);
    return undefined;
  }

  #take(ending: unknown, text: unknown): void {
    const known = ENDINGS.find((name) => name === ending);
    if (this.#outcome !== undefined || typeof text !== 'string' || known === undefined) return;
    const tooLarge = Buffer.byteLength(text) > RESULT_BYTES_MAX;
    this.#outcome = tooLarge ? { ending: 'result_too_large', text: '' } : { ending: known, text };
  }

  #log(level: unknown, text: unknown): void {
    if (typeof level !== 'string' || typeof text !== 'string') return;
    const bytes = Buffer.byteLength(text) + 1;
    if (bytes > this.#consoleLeft) return;
    this.#consoleLeft -= bytes;
    this.#console.push({ level, text });
  }

  #startTimer(id: unknown, wait_ms: unknown): void {
    if (typeof id !== 'number' || typeof wait_ms !== 'number') return;
    if (this.#timers.size >= TIMERS_MAX) return;
    const due = (): void => {
      this.#timers.delete(id);
      this.#segment((prepared, timeout_ms) =>
        prepared.enter.applySync(undefined, ['timer', id], { timeout: timeout_ms }),
      );
    };
    this.#timers.set(id, setTimeout(due, wait_ms));
  }

  #clearTimer(id: unknown): void {
    if (typeof id !== 'number') return;
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
  }

  #end(ending: Ending, text: string): void {
    clearTimeout(this.#deadline);
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    if (this.#context !== undefined && !this.#isolate.isDisposed) releaseContext(this.#context);
    this.#context = undefined;
    this.#onEnd({ ending, text, console: this.#console });
  }
}
