/**
 * One run of a script in a context: enters the context, keeps its timers and calls, cuts it at its
 * deadline, and ends exactly once. What comes from inside is text or a number, or it is ignored.
 */
import {
  type AnswerMessage,
  BT_CALLS_IN_FLIGHT_MAX,
  COMPUTE_MS_MAX,
  CONSOLE_BYTES_MAX,
  CONSOLE_LINES_MAX,
  type ConsoleLine,
  type Ending,
  FETCHES_IN_FLIGHT_MAX,
  MESSAGE_CHARACTERS_MAX,
  monotonicNow,
  RESULT_BYTES_MAX,
  type RunMessage,
  type ServiceName,
  TIMERS_MAX,
} from '../protocol.ts';
import type { PreparedContext, ScriptIsolate } from './isolate.ts';
import { answerNative } from './native-services.ts';

export interface Ended {
  readonly ending: Ending;
  /** JSON text, or the name of a module. */
  readonly text: string;
  readonly console: readonly ConsoleLine[];
}

export interface InvocationEvents {
  /** With the run's id before customer code holds the thread, with 0 after. */
  readonly onSegment: (id: number) => void;
  readonly onCall: (call: number, service: ServiceName, request: string) => void;
  readonly onCancel: (call: number) => void;
  readonly onEnd: (ended: Ended) => void;
}

/** How code inside may say that it ended; the other ends are for V8 and the clock to say. */
const ENDINGS = ['ok', 'error', 'type', 'unknown_module', 'result_too_large'] as const;
/** The prelude keeps to its own bounds, and the gateway to its; this one is for a prelude that fails. */
const CALLS_OPEN_MAX = FETCHES_IN_FLIGHT_MAX + BT_CALLS_IN_FLIGHT_MAX;

const NEVER_SETTLES = JSON.stringify({
  name: 'Error',
  errors: { error: ['The function returned a promise that nothing can settle any more.'] },
});
const FAILED_OUTSIDE = 'The code failed outside of its function';

export class Invocation {
  readonly #isolate: ScriptIsolate;
  readonly #run: RunMessage;
  readonly #events: InvocationEvents;
  readonly #timers = new Map<number, NodeJS.Timeout>();
  /** Calls whose answer has not come. */
  readonly #calls = new Set<number>();
  readonly #console: ConsoleLine[] = [];
  #lastCall = 0;
  #consoleLeft = CONSOLE_BYTES_MAX;
  #computeLeft_ms = COMPUTE_MS_MAX;
  /** When the code that holds the thread now must let go of it; on the monotonic clock. */
  #segmentEnds_ms = 0;
  #overran = false;
  /** How the run ends when that comes: by its own time, or by what it may compute. */
  #overrun: Ending = 'timeout';
  /** Whether a later run of the script may have the context. */
  #keep: boolean;
  #context: PreparedContext | undefined;
  #deadline: NodeJS.Timeout | undefined;
  /** `told`: by the prelude, so that the context is in order. */
  #outcome: { ending: Ending; text: string; told: boolean } | undefined;

  constructor(isolate: ScriptIsolate, run: RunMessage, events: InvocationEvents) {
    this.#isolate = isolate;
    this.#run = run;
    this.#events = events;
    this.#keep = run.reuse;
  }

  /** `request`: JSON text of what the script's function gets. */
  start(request: string): void {
    const failure = this.#isolate.syntaxFailure;
    if (failure !== undefined) {
      this.#end('syntax', JSON.stringify(failure));
      return;
    }
    this.#segment((prepared, timeout) => {
      const { services, purpose } = this.#run;
      const offered = [services.includes('fetch'), services.includes('bt')] as const;
      if (prepared.isLoaded) {
        const again = ['again', request, undefined, undefined, ...offered] as const;
        prepared.enter.applySync(undefined, [...again], { timeout });
        return;
      }
      const factory = this.#isolate.factory(prepared.context, timeout);
      if (factory === undefined) return;
      const values = ['load', factory.derefInto({ release: true }), purpose, request, ...offered];
      const typed = values as Parameters<typeof prepared.enter.applySync>[1];
      prepared.enter.applySync(undefined, typed, { timeout });
    });
    // While code runs V8 keeps the time; this is for a run that waits.
    if (this.#timers.size + this.#calls.size === 0) return;
    this.#deadline = setTimeout(
      () => this.#end('timeout', ''),
      this.#run.ends_at_ms - monotonicNow(),
    );
  }

  /** The gateway has answered a call. Answers that nobody waits for are ignored. */
  answer({ call, ok, keep }: AnswerMessage, text: string): void {
    if (!this.#calls.delete(call)) return;
    this.#keep &&= keep;
    this.#segment((prepared, timeout) =>
      prepared.enter.applySync(undefined, ['answer', call, ok, text], { timeout }),
    );
  }

  /** Its isolate was disposed of while it waited. */
  endOutOfMemory(): void {
    this.#end('memory', '');
  }

  /** Runs customer code for as long as this run may still compute, then looks what came of it. */
  #segment(work: (prepared: PreparedContext, timeout_ms: number) => void): void {
    const started = monotonicNow();
    const runLeft_ms = this.#run.ends_at_ms - started;
    const left_ms = Math.ceil(Math.min(runLeft_ms, this.#computeLeft_ms));
    this.#overrun = this.#computeLeft_ms < runLeft_ms ? 'compute_timeout' : 'timeout';
    if (left_ms <= 0) {
      this.#end(this.#overrun, '');
      return;
    }
    this.#segmentEnds_ms = started + left_ms;
    this.#events.onSegment(this.#run.id);
    try {
      work(this.#enterContext(), left_ms);
    } catch (error) {
      this.#outcome = this.#outcomeOf(error);
    } finally {
      this.#events.onSegment(0);
    }
    this.#computeLeft_ms -= monotonicNow() - started;
    if (this.#outcome !== undefined) this.#end(this.#outcome.ending, this.#outcome.text);
    else if (this.#isolate.isDisposed) this.#end('memory', '');
    else if (this.#timers.size + this.#calls.size === 0) this.#end('error', NEVER_SETTLES);
  }

  #enterContext(): PreparedContext {
    if (this.#context === undefined) {
      this.#context = this.#isolate.takeContext(this.#run.reuse && this.#run.purpose === 'invoke');
      this.#context.native = (operation, first, second) => this.#answer(operation, first, second);
    }
    return this.#context;
  }

  /** What customer code throws stays inside; out here come V8's own ends. */
  #outcomeOf(error: unknown): { ending: Ending; text: string; told: boolean } {
    if (this.#overran) return { ending: this.#overrun, text: '', told: false };
    if (this.#isolate.isDisposed) return { ending: 'memory', text: '', told: false };
    const message = error instanceof Error ? error.message : '';
    const timedOut = message === 'Script execution timed out.';
    if (timedOut) return { ending: this.#overrun, text: '', told: false };
    // In a timer, or in a promise that nobody waits for. What it says is text, as that of other errors.
    const said = message.slice(0, MESSAGE_CHARACTERS_MAX - FAILED_OUTSIDE.length - 2);
    const errors = { error: [said === '' ? `${FAILED_OUTSIDE}.` : `${FAILED_OUTSIDE}: ${said}`] };
    return { ending: 'error', text: JSON.stringify({ name: 'Error', errors }), told: false };
  }

  #answer(operation: unknown, first: unknown, second: unknown): string | undefined {
    if (monotonicNow() > this.#segmentEnds_ms) this.#cut();
    if (operation === 'done') this.#take(first, second);
    else if (operation === 'loaded') this.#markLoaded();
    else if (operation === 'log') this.#log(first, second);
    else if (operation === 'timer') this.#startTimer(first, second);
    else if (operation === 'clear') this.#clearTimer(first);
    else if (operation === 'call') return this.#call(first, second);
    else if (operation === 'cancel') this.#cancel(first);
    else if (typeof operation === 'string') return answerNative(operation, first, second);
    return undefined;
  }

  /**
   * V8's timer rests during calls like this one, so a loop of them would never meet it. Only the end of
   * the isolate ends code that catches everything; the script's other runs in it end as well.
   */
  #cut(): never {
    this.#overran = true;
    this.#isolate.dispose();
    throw new Error('The time of this run is over.');
  }

  #take(ending: unknown, text: unknown): void {
    const known = ENDINGS.find((name) => name === ending);
    if (this.#outcome !== undefined || typeof text !== 'string' || known === undefined) return;
    const tooLarge = Buffer.byteLength(text) > RESULT_BYTES_MAX;
    this.#outcome = tooLarge
      ? { ending: 'result_too_large', text: '', told: true }
      : { ending: known, text, told: true };
  }

  #markLoaded(): void {
    if (this.#context !== undefined) this.#context.isLoaded = true;
  }

  #log(level: unknown, text: unknown): void {
    if (typeof level !== 'string' || typeof text !== 'string') return;
    const bytes = Buffer.byteLength(text) + 1;
    if (bytes > this.#consoleLeft || this.#console.length >= CONSOLE_LINES_MAX) return;
    this.#consoleLeft -= bytes;
    this.#console.push({ level, text });
  }

  #startTimer(id: unknown, wait_ms: unknown): void {
    if (typeof id !== 'number' || typeof wait_ms !== 'number') return;
    if (this.#timers.size >= TIMERS_MAX) return;
    const due = (): void => {
      this.#timers.delete(id);
      this.#segment((prepared, timeout) =>
        prepared.enter.applySync(undefined, ['timer', id], { timeout }),
      );
    };
    this.#timers.set(id, setTimeout(due, wait_ms));
  }

  #clearTimer(id: unknown): void {
    if (typeof id !== 'number') return;
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
  }

  /** The number of the call as text. */
  #call(service: unknown, request: unknown): string | undefined {
    if (typeof request !== 'string' || this.#calls.size >= CALLS_OPEN_MAX) return undefined;
    const known = this.#run.services.find((name) => name === service);
    if (known === undefined) return undefined;
    this.#lastCall += 1;
    this.#calls.add(this.#lastCall);
    this.#events.onCall(this.#lastCall, known, request);
    return String(this.#lastCall);
  }

  #cancel(call: unknown): void {
    if (typeof call === 'number' && this.#calls.delete(call)) this.#events.onCancel(call);
  }

  #end(ending: Ending, text: string): void {
    clearTimeout(this.#deadline);
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#calls.clear();
    if (this.#context !== undefined) {
      const inOrder = this.#outcome?.told === true && (ending === 'ok' || ending === 'error');
      this.#isolate.giveBack(this.#context, this.#keep && inOrder);
    }
    this.#context = undefined;
    this.#events.onEnd({ ending, text, console: this.#console });
  }
}
