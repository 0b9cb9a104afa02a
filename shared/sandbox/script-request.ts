/** What a caller asks the supervisor to run, and what of it goes to a host. */
import {
  DEADLINE_MS_DEFAULT,
  DEADLINE_MS_MAX,
  monotonicNow,
  REQUEST_BYTES_MAX,
  type ScriptResult,
  type ServiceName,
  SOURCE_BYTES_MAX,
} from './protocol.ts';
import { runtimeError } from './script-result.ts';
import type { ScriptServices } from './script-services.ts';

export interface ScriptRequest {
  readonly tenant_id: string;
  /** Changes with the source: a version is compiled once. */
  readonly script_version: string;
  readonly source: string;
  /** JSON texts; absent ones are null inside. */
  readonly args?: string;
  readonly configuration?: string;
  /** 1 to DEADLINE_MS_MAX, from now, waiting included. */
  readonly deadline_ms?: number;
  /** What the script may call out for. `req.bt` is null without `bt`. */
  readonly services?: ScriptServices;
  /** Keep the context for the next run of this version: what the script leaves there, that run finds. */
  readonly reuse?: boolean;
  /** Asked at each answer to a call: false when no later run may find what this one knows by now. */
  readonly mayKeep?: () => boolean;
  /** A run of the same tenant waits for this one, see TenantShares. */
  readonly nested?: boolean;
}

/** Why the request is not even sent to a host; `undefined` when it may be. `bytes`: as of `requestBytes`. */
export function whyRefused({ source }: ScriptRequest, bytes: number): ScriptResult | undefined {
  if (Buffer.byteLength(source) > SOURCE_BYTES_MAX) {
    return { kind: 'type', message: 'The code is larger than 1 MiB.' };
  }
  if (bytes > REQUEST_BYTES_MAX) {
    return runtimeError('The arguments and the configuration are larger than 11 MiB.');
  }
  return undefined;
}

/** Arguments and configuration, which are kept until the run ends. */
export function requestBytes({ args = '', configuration = '' }: ScriptRequest): number {
  return Buffer.byteLength(args) + Buffer.byteLength(configuration);
}

/** JSON text of what the function gets; `args` and `configuration` are JSON texts already. */
export function requestText({ args = 'null', configuration = 'null' }: ScriptRequest): string {
  return `{"args":${args},"configuration":${configuration},"bt":null}`;
}

/** How long the run may take. */
export function deadlineOf({ deadline_ms = DEADLINE_MS_DEFAULT }: ScriptRequest): number {
  return Math.min(deadline_ms, DEADLINE_MS_MAX);
}

/** When the run must have ended, on the monotonic clock. */
export function endOf(request: ScriptRequest): number {
  return monotonicNow() + deadlineOf(request);
}

export function serviceNames({ fetch, bt }: ScriptServices): ServiceName[] {
  const names: ServiceName[] = [];
  if (fetch !== undefined) names.push('fetch');
  if (bt !== undefined) names.push('bt');
  return names;
}
