/**
 * What the gateway and a sandbox host say to each other, and every limit on customer scripts. Shared by
 * both sides, so it must import nothing. The gateway trusts no field that comes from a host.
 */

/** V8 heap of one isolate (one script version of one tenant), MiB; above it V8 ends the run. */
export const ISOLATE_MEMORY_MB_MAX = 128;
/** Wall clock of a synchronous reaction (spec: sync reactors are cut after 30 s). */
export const DEADLINE_MS_DEFAULT = 30_000;
/** The longest asynchronous reaction (spec: timeout_ms). */
export const DEADLINE_MS_MAX = 210_000;
/** Time one run may hold its thread in all; signing and key generation need far less. */
export const COMPUTE_MS_MAX = 10_000;
/** A result's JSON text, UTF-8: the same bound as a request to the gateway. */
export const RESULT_BYTES_MAX = 5 * 1024 * 1024;
/** Arguments and configuration of one run as JSON: two bodies of 5 MiB and what is between them. */
export const REQUEST_BYTES_MAX = 11 * 1024 * 1024;
/** Source of a script: far above every known reactor, far below what compiling would notice. */
export const SOURCE_BYTES_MAX = 1024 * 1024;
/** Console text kept of one run; the rest is dropped, the script goes on. */
export const CONSOLE_BYTES_MAX = 64 * 1024;
/** Console lines kept of one run: each costs the gateway more than its text. */
export const CONSOLE_LINES_MAX = 1_024;
/** Timers of one run that wait at the same time. */
export const TIMERS_MAX = 100;
/** Calls out of one run: in all, and at the same time. More wait inside, or are refused. */
export const FETCHES_MAX = 50;
export const FETCHES_IN_FLIGHT_MAX = 10;
export const BT_CALLS_MAX = 1_000;
export const BT_CALLS_IN_FLIGHT_MAX = 32;
/** JSON text of a call, UTF-8: a body of 5 MiB as base64 and what goes with it. */
export const CALL_REQUEST_BYTES_MAX = 8 * 1024 * 1024;
/** JSON text of an answer, UTF-8: a body of 10 MiB as base64 and what goes with it. */
export const CALL_ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** An error message of a script; longer ones carry data more often than meaning. */
export const MESSAGE_CHARACTERS_MAX = 1024;
/** Entries of a normalised `errors` object, and of each of its lists. */
export const ERROR_ENTRIES_MAX = 100;
/** JSON text of an error, without the body of a custom response; the gateway parses it. */
export const ERROR_CHARACTERS_MAX = 1024 * 1024;
/** Headers of a custom response. */
export const CUSTOM_HEADERS_MAX = 100;
/** Descriptor, in a host, of its own pipe: answers go in, signs of life come out. */
export const HOST_DESCRIPTOR = 3;
/** Descriptor, in a host, of the file where its threads write who holds them (thread-holders.ts). */
export const HOLDERS_DESCRIPTOR = 4;
/** Descriptor, in a host, of its first thread's pipe, then those of the others: runs go in, results come out. */
export const THREADS_DESCRIPTOR = 5;
/** For each thread in turn: the id of the run that holds it, or 0. */
export const HOLDER_BYTES = Int32Array.BYTES_PER_ELEMENT;
/** Fits there. */
export const RUN_ID_MAX = 2 ** 31 - 1;
/** Where, in what a thread shares with its host, its changes are counted; before it, who holds it. */
export const PROGRESS_CHANGES = 1;
/** How long a run may keep its thread busy before its host reports it as one that holds it. */
export const BUSY_REPORT_MS = 10;

/** A host with work that was silent for longer is taken for hung; it reports every other second at least. */
export const SILENCE_MS_MAX = 5_000;
/** One that starts says nothing until it is ready, which takes a loaded machine some seconds. */
export const START_MS_MAX = 20_000;
export const SIGN_OF_LIFE_MS = 1_000;

/** Milliseconds on the clock that all processes of a machine share and that is never set back. */
export function monotonicNow(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** What a run is for: `check` only compiles and loads the script, as when a reactor is saved. */
export type RunPurpose = 'invoke' | 'check';

/** What a run may call out for. */
export type ServiceName = 'fetch' | 'bt';

/** Per service: calls of one run in all, and at the same time. */
export const CALL_LIMITS: Readonly<
  Record<ServiceName, { readonly calls_max: number; readonly in_flight_max: number }>
> = {
  fetch: { calls_max: FETCHES_MAX, in_flight_max: FETCHES_IN_FLIGHT_MAX },
  bt: { calls_max: BT_CALLS_MAX, in_flight_max: BT_CALLS_IN_FLIGHT_MAX },
};

/** Gateway → thread. The body is `source` (only when the thread has not got it) followed by the request. */
export interface RunMessage {
  readonly kind: 'run';
  readonly id: number;
  /** `<tenant>/<script version>`: one isolate each. */
  readonly script_key: string;
  readonly tenant_id: string;
  readonly purpose: RunPurpose;
  /** On the monotonic clock of the machine, see `monotonicNow`. */
  readonly ends_at_ms: number;
  /** What this run may call out for. */
  readonly services: readonly ServiceName[];
  /** Whether the context may be one of an earlier run of this script, and is kept for the next. */
  readonly reuse: boolean;
  /** UTF-16 length of the source at the head of the body; absent when it was sent before. */
  readonly source_length?: number;
}

/**
 * How a run ended inside. `body` of the frame: JSON text of the value or of the error; after that of a
 * CustomHttpResponseError a line feed and the JSON text of its body, which the gateway never parses.
 */
export type Ending =
  | 'ok'
  | 'error'
  | 'syntax'
  | 'type'
  | 'unknown_module'
  | 'timeout'
  | 'compute_timeout'
  | 'memory'
  | 'result_too_large';

export interface ConsoleLine {
  readonly level: string;
  readonly text: string;
}

/** Thread → gateway. */
export interface ResultMessage {
  readonly kind: 'result';
  readonly id: number;
  readonly ending: Ending;
  readonly console: readonly ConsoleLine[];
}

/** Thread → gateway: send the run again with its source; nothing was started. */
export interface UnknownScriptMessage {
  readonly kind: 'unknown_script';
  readonly id: number;
}

/** Host → gateway, once, when all threads can work. */
export interface ReadyMessage {
  readonly kind: 'ready';
}

/** Host → gateway: runs that keep a thread busy; sent when the list changes, and as a sign of life. */
export interface BusyMessage {
  readonly kind: 'busy';
  readonly ids: readonly number[];
}

/** Thread → gateway: a run asks for something. Body: the request's JSON text. */
export interface CallMessage {
  readonly kind: 'call';
  readonly id: number;
  /** Counts the calls of a run from 1. */
  readonly call: number;
  readonly service: ServiceName;
}

/** Thread → gateway: nobody waits for that answer any more. */
export interface CancelMessage {
  readonly kind: 'cancel';
  readonly id: number;
  readonly call: number;
}

/** The answer of a call. Body: its JSON text, or that of `{message, code?}` when `ok` is false. */
export interface AnswerMessage {
  readonly kind: 'answer';
  readonly id: number;
  readonly call: number;
  readonly ok: boolean;
  /** False: with what it says, the context is not kept, whatever `reuse` of the run says. */
  readonly keep: boolean;
}

/**
 * Gateway → host, on the host's own pipe: that one is always read, whatever the threads compute, so that
 * what scripts fetch and do not take is their host's memory, which is bounded, and not the gateway's.
 */
export interface RoutedAnswer extends AnswerMessage {
  /** Where its run is, from 0. */
  readonly thread: number;
}

export type HostMessage = ReadyMessage | BusyMessage;
export type ThreadMessage = ResultMessage | UnknownScriptMessage | CallMessage | CancelMessage;

/** A thrown error in the form of the reactor errors (facts 2.4). */
export interface ScriptError {
  readonly name: string;
  readonly status: number;
  readonly detail: string;
  readonly errors: Record<string, string[]>;
  /** Of the code, from 1, where it is known: for who debugs it. */
  readonly line?: number;
}

/** The closed union of how a run ends for the gateway. No member carries an input by itself. */
export type ScriptResult =
  /** `value`: JSON text. */
  | { readonly kind: 'ok'; readonly value: string }
  | { readonly kind: 'error'; readonly error: ScriptError }
  /** CustomHttpResponseError: the whole response. `body`: JSON text, `undefined` when absent. */
  | {
      readonly kind: 'custom_response';
      readonly status: number;
      readonly headers: Record<string, string>;
      readonly body: string | undefined;
    }
  | { readonly kind: 'syntax'; readonly message: string; readonly line: number | undefined }
  | { readonly kind: 'type'; readonly message: string }
  | { readonly kind: 'unknown_module'; readonly module: string }
  /** `limit`: the time of the run, waiting included, or the time that it may compute. */
  | { readonly kind: 'timeout'; readonly limit: 'run' | 'compute'; readonly limit_ms: number }
  | { readonly kind: 'memory' }
  | { readonly kind: 'result_too_large' }
  /** The script ended the process that ran it. */
  | { readonly kind: 'crashed' }
  /** Its process was lost, by no proven fault of its own, and it had called out: never run twice. */
  | { readonly kind: 'interrupted' }
  /** Not started: the tenant is over its share (429), or the machine is full (503). */
  | { readonly kind: 'busy'; readonly scope: 'tenant' | 'machine' };

export interface ScriptRun {
  readonly result: ScriptResult;
  readonly console: readonly ConsoleLine[];
}
