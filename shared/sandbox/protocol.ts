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
/** Timers of one run that wait at the same time. */
export const TIMERS_MAX = 100;
/** An error message of a script; longer ones carry data more often than meaning. */
export const MESSAGE_CHARACTERS_MAX = 1024;
/** Entries of a normalised `errors` object, and of each of its lists. */
export const ERROR_ENTRIES_MAX = 100;
/** How long a run may keep its thread busy before its host reports it as one to suspect. */
export const BUSY_REPORT_MS = 10;

/** A host with work that was silent for longer is taken for hung; it reports at least each second. */
export const SILENCE_MS_MAX = 5_000;
export const SIGN_OF_LIFE_MS = 1_000;

/** Milliseconds on the clock that all processes of a machine share and that is never set back. */
export function monotonicNow(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** What a run is for: `check` only compiles and loads the script, as when a reactor is saved. */
export type RunPurpose = 'invoke' | 'check';

/** Gateway → host. The body is `source` (only when the host has not got it) followed by the request. */
export interface RunMessage {
  readonly kind: 'run';
  readonly id: number;
  /** `<tenant>/<script version>`: one isolate each. */
  readonly script_key: string;
  readonly tenant_id: string;
  readonly purpose: RunPurpose;
  /** On the monotonic clock of the machine, see `monotonicNow`. */
  readonly ends_at_ms: number;
  /** UTF-16 length of the source at the head of the body; 0 when it was sent before. */
  readonly source_length: number;
}

/** How a run ended inside. `body` of the frame: JSON text of the value or of the error. */
export type Ending =
  | 'ok'
  | 'error'
  | 'syntax'
  | 'type'
  | 'unknown_module'
  | 'timeout'
  | 'memory'
  | 'result_too_large';

export interface ConsoleLine {
  readonly level: string;
  readonly text: string;
}

/** Host → gateway. `unknown_script`: send the run again with its source; nothing was started. */
export interface ResultMessage {
  readonly kind: 'result';
  readonly id: number;
  readonly ending: Ending | 'unknown_script';
  readonly console: readonly ConsoleLine[];
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

export type HostMessage = ResultMessage | ReadyMessage | BusyMessage;

/** A thrown error in the form of the reactor errors (facts 2.4). */
export interface ScriptError {
  readonly name: string;
  readonly status: number;
  readonly detail: string;
  readonly errors: Record<string, string[]>;
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
  | { readonly kind: 'timeout' }
  | { readonly kind: 'memory' }
  | { readonly kind: 'result_too_large' }
  /** The script ended the process that ran it. */
  | { readonly kind: 'crashed' }
  /** Not started: the tenant is over its share (429), or the machine is full (503). */
  | { readonly kind: 'busy'; readonly scope: 'tenant' | 'machine' };

export interface ScriptRun {
  readonly result: ScriptResult;
  readonly console: readonly ConsoleLine[];
}
