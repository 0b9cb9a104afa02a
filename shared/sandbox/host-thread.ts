/** What is known of one thread of a host, and of the runs in it. */
import type { FrameStream } from './frames.ts';
import type { RunMessage } from './protocol.ts';

/**
 * Runs of one tenant that share a thread, without those that wait for an answer. Many at a time make
 * messages few: with 8, a run in a kept context cost a fifth more.
 */
const RUNS_PER_THREAD_MAX = 32;
/** As many isolates as a thread keeps at most: of these scripts it has the source, or says that it has not. */
const KNOWN_SCRIPTS_MAX = 24;

/** What is sent of a run. */
export interface HostRun {
  readonly message: RunMessage;
  readonly source: string;
  /** JSON text of what the script's function gets. */
  readonly request: string;
}

export interface Thread {
  readonly index: number;
  readonly stream: FrameStream<RunMessage>;
  /** Who has runs here that have not ended. */
  readonly tenants: TenantRuns[];
  runs: number;
  /** Of them, those that wait for an answer from outside. */
  parked: number;
  /** Scripts that were sent here, the last used last: their isolates are likely warm. */
  readonly script_keys: Set<string>;
  last_key: string | undefined;
  /** Whether customer code was seen to hold it, and nothing was heard of it since. */
  isHeld: boolean;
}

interface TenantRuns {
  readonly tenant_id: string;
  runs: number;
}

export interface PlacedRun {
  readonly run: HostRun;
  /** When it began to wait for one. */
  since_ms: number;
  /** `undefined`: it waits for one. */
  thread: Thread | undefined;
  /** As it was sent there. */
  sent: RunMessage | undefined;
  /** Of its calls, which are counted from 1. */
  last_call: number;
  /** Calls that have not been answered. */
  calls: Set<number> | undefined;
}

export function createThread(stream: FrameStream<RunMessage>, index: number): Thread {
  return {
    ...{ index, stream, tenants: [], runs: 0, parked: 0 },
    ...{ script_keys: new Set(), last_key: undefined, isHeld: false },
  };
}

export function hasRoom(thread: Thread): boolean {
  return thread.runs - thread.parked < RUNS_PER_THREAD_MAX;
}

export function servesTenant({ tenants }: Thread, tenant_id: string): boolean {
  return tenants.some((tenant) => tenant.tenant_id === tenant_id);
}

/** Counts a run that is placed there. Returns whether the thread has been sent its script before. */
export function enter(thread: Thread, { tenant_id, script_key }: RunMessage): boolean {
  const tenant = thread.tenants.find((known) => known.tenant_id === tenant_id);
  if (tenant === undefined) thread.tenants.push({ tenant_id, runs: 1 });
  else tenant.runs += 1;
  thread.runs += 1;
  return remember(thread, script_key);
}

/** Whether the thread has been sent this script. */
function remember(thread: Thread, script_key: string): boolean {
  if (thread.last_key === script_key) return true;
  const isKnown = thread.script_keys.delete(script_key);
  thread.script_keys.add(script_key);
  thread.last_key = script_key;
  const [oldest] = thread.script_keys;
  if (oldest !== undefined && thread.script_keys.size > KNOWN_SCRIPTS_MAX) {
    thread.script_keys.delete(oldest);
  }
  return isKnown;
}

export function openCall(thread: Thread, placed: PlacedRun, call: number): void {
  placed.last_call = call;
  placed.calls ??= new Set();
  if (placed.calls.size === 0) thread.parked += 1;
  placed.calls.add(call);
}

export function closeCall(thread: Thread, { calls }: PlacedRun, call: number): void {
  if (calls?.delete(call) && calls.size === 0) thread.parked -= 1;
}

export function leave(thread: Thread, { run, calls }: PlacedRun): void {
  thread.runs -= 1;
  if (calls !== undefined && calls.size > 0) thread.parked -= 1;
  const at = thread.tenants.findIndex(({ tenant_id }) => tenant_id === run.message.tenant_id);
  const tenant = thread.tenants[at];
  if (tenant === undefined) return;
  tenant.runs -= 1;
  if (tenant.runs === 0) thread.tenants.splice(at, 1);
}
