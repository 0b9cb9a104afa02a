/**
 * The calls out of one run, as the gateway sees them. The host only claims that the script asked: what
 * is too much, too large or not offered is refused here, and nothing outlives the run.
 */
import {
  type AnswerMessage,
  CALL_ANSWER_BYTES_MAX,
  CALL_LIMITS,
  CALL_REQUEST_BYTES_MAX,
  type CallMessage,
  type ServiceName,
} from './protocol.ts';
import { ScriptCallError, type ScriptServices } from './script-services.ts';

const FAILED = 'The call failed.';

export interface RunCallsOptions {
  readonly id: number;
  readonly services: ScriptServices;
  /** Whether the run's context may still be kept; absent: it may. */
  readonly mayKeep?: (() => boolean) | undefined;
  /** Sends an answer to the host that runs the script. */
  readonly answer: (message: AnswerMessage, body: string) => void;
  /** The run begins to wait for calls, or waits for none any more. Not called once it is over. */
  readonly onWaiting: (waits: boolean) => void;
}

interface OpenCall {
  readonly service: ServiceName;
  readonly controller: AbortController;
}

export class RunCalls {
  readonly #options: RunCallsOptions;
  readonly #open = new Map<number, OpenCall>();
  readonly #made: Record<ServiceName, number> = { fetch: 0, bt: 0 };
  #last = 0;
  #over = false;

  constructor(options: RunCallsOptions) {
    this.#options = options;
  }

  /** Whether a call was let through: the run may have had an effect outside. */
  get calledOut(): boolean {
    return this.#made.fetch + this.#made.bt > 0;
  }

  /** Carries the call out, or refuses it. `request`: JSON text, unchecked. */
  take({ call, service }: CallMessage, request: string): void {
    // Numbers only rise, so that one that was used before is not worth remembering.
    if (this.#over || call <= this.#last) return;
    this.#last = call;
    const run = this.#options.services[service];
    const refused = this.#whyRefused(service, request);
    if (run === undefined || refused !== undefined) {
      this.#refuse(call, refused ?? new ScriptCallError(FAILED));
      return;
    }
    this.#made[service] += 1;
    const controller = new AbortController();
    this.#open.set(call, { service, controller });
    if (this.#open.size === 1) this.#options.onWaiting(true);
    // A service that throws before it returns a promise fails like any other.
    new Promise<string>((resolve) => resolve(run(request, controller.signal))).then(
      (answer) => this.#settle(call, answer),
      (error: unknown) => this.#settle(call, undefined, error),
    );
  }

  /** Nobody waits for the answer any more. */
  cancel(call: number): void {
    const open = this.#open.get(call);
    if (open === undefined) return;
    this.#close(call);
    open.controller.abort();
  }

  /** The run is over, for whatever reason: what is under way is aborted, answers lead nowhere. */
  end(): void {
    this.#over = true;
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { controller } of open) controller.abort();
  }

  #whyRefused(service: ServiceName, request: string): ScriptCallError | undefined {
    const { calls_max, in_flight_max } = CALL_LIMITS[service];
    const open = [...this.#open.values()].filter((call) => call.service === service);
    if (this.#made[service] >= calls_max || open.length >= in_flight_max) {
      return new ScriptCallError(`Too many calls of ${service}.`, 'TOO_MANY_CALLS');
    }
    if (Buffer.byteLength(request) > CALL_REQUEST_BYTES_MAX) {
      return new ScriptCallError('The request is too large.', 'TOO_LARGE');
    }
    return undefined;
  }

  #settle(call: number, answer: string | undefined, error?: unknown): void {
    if (!this.#open.has(call)) return;
    this.#close(call);
    if (typeof answer !== 'string') this.#refuse(call, error);
    else if (Buffer.byteLength(answer) > CALL_ANSWER_BYTES_MAX) {
      this.#refuse(call, new ScriptCallError('The answer is too large.', 'TOO_LARGE'));
    } else this.#answer(call, true, answer);
  }

  #close(call: number): void {
    this.#open.delete(call);
    if (this.#open.size === 0) this.#options.onWaiting(false);
  }

  #refuse(call: number, error: unknown): void {
    const { message, code } =
      error instanceof ScriptCallError ? error : { message: FAILED, code: undefined };
    this.#answer(call, false, JSON.stringify({ message, code }));
  }

  #answer(call: number, ok: boolean, body: string): void {
    const { id, mayKeep, answer } = this.#options;
    answer({ kind: 'answer', id, call, ok, keep: mayKeep?.() ?? true }, body);
  }
}
