/**
 * Runs customer scripts in sandbox hosts and answers how they ended. Customer code never comes closer
 * to this process than a pipe. A host that is lost costs its culprit the run; everybody else's run is
 * started again elsewhere, which is safe as long as nothing in a host can act on the outside.
 */
import { findIsolation } from './host-command.ts';
import type { HostProcess, LossReason } from './host-process.ts';
import { HostSet } from './host-set.ts';
import { placeTenant } from './placement.ts';
import {
  DEADLINE_MS_DEFAULT,
  DEADLINE_MS_MAX,
  monotonicNow,
  REQUEST_BYTES_MAX,
  type ResultMessage,
  type RunMessage,
  type RunPurpose,
  type ScriptResult,
  type ScriptRun,
  SOURCE_BYTES_MAX,
} from './protocol.ts';
import { Quarantine } from './quarantine.ts';
import { readResult, runtimeError } from './script-result.ts';
import { TenantShares } from './tenant-shares.ts';

export interface SupervisorOptions {
  /** Hosts that tenants are placed on; a spare and a quarantine host come on top. */
  readonly host_count: number;
  /** Threads of each host: tenants that can compute there at the same time. */
  readonly thread_count?: number;
  /** A host above this is killed. Covers the isolates of all its threads. */
  readonly rss_bytes_max?: number;
  /** Runs of one tenant at the same time, and waiting; of all tenants together. */
  readonly tenant_running_max?: number;
  readonly tenant_waiting_max?: number;
  readonly machine_max?: number;
  /** Refuse to start when hosts cannot be cut off from the network. */
  readonly strict: boolean;
}

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
}

interface PendingRun {
  readonly message: RunMessage;
  readonly tenant_id: string;
  readonly script_key: string;
  readonly source: string;
  readonly request: string;
  readonly settle: (run: ScriptRun) => void;
  host: HostProcess | undefined;
  losses: number;
}

const THREAD_COUNT_DEFAULT = 4;
/** Room for the idle isolates of all threads and for one that runs into its own bound on each. */
const RSS_BYTES_MAX_DEFAULT = 1024 * 1024 * 1024;
const TENANT_RUNNING_MAX = 16;
const TENANT_WAITING_MAX = 64;
const MACHINE_MAX = 1024;
/** Ends that do not speak for a script: what it did to its host, or that it never ran. */
const NOT_GOOD: readonly ScriptResult['kind'][] = ['crashed', 'memory', 'timeout', 'busy'];
/** Lost hosts that a run may survive as a bystander. */
const LOSSES_MAX = 3;

export class Supervisor {
  readonly #hosts: HostSet;
  readonly #shares: TenantShares;
  readonly #quarantine: Quarantine<PendingRun>;
  readonly #pending = new Map<number, PendingRun>();
  #lastId = 0;

  private constructor(hosts: HostSet, shares: TenantShares) {
    this.#hosts = hosts;
    this.#shares = shares;
    this.#quarantine = new Quarantine((run) => this.#send(run, this.#hosts.at('quarantine')));
  }

  /** Starts the hosts and settles when they can run scripts. Throws when they cannot. */
  static async start(options: SupervisorOptions): Promise<Supervisor> {
    const isolation = findIsolation();
    if (options.strict && isolation.network !== 'none') {
      throw new Error('sandbox hosts cannot be cut off from the network on this system');
    }
    const hosts: HostSet = new HostSet({
      isolation,
      slot_count: options.host_count,
      thread_count: options.thread_count ?? THREAD_COUNT_DEFAULT,
      rss_bytes_max: options.rss_bytes_max ?? RSS_BYTES_MAX_DEFAULT,
      onResult: (host, result, body) => supervisor.#takeResult(host, result, body),
      onLost: (host, reason, suspects) => supervisor.#takeLoss(host, reason, suspects),
    });
    const shares = new TenantShares({
      tenant_running_max: options.tenant_running_max ?? TENANT_RUNNING_MAX,
      tenant_waiting_max: options.tenant_waiting_max ?? TENANT_WAITING_MAX,
      machine_max: options.machine_max ?? MACHINE_MAX,
    });
    const supervisor = new Supervisor(hosts, shares);
    await hosts.start();
    const network = supervisor.status().network;
    if (options.strict && network !== 'none') {
      await hosts.close();
      throw new Error('a sandbox host was not cut off from the network');
    }
    return supervisor;
  }

  /** Calls the script's function with `{args, configuration, bt: null}`. Never rejects. */
  run(request: ScriptRequest): Promise<ScriptRun> {
    return this.#admit(request, 'invoke');
  }

  /** Compiles and loads the script without calling its function: `ok` with `null` when it is one. */
  check(request: ScriptRequest): Promise<ScriptRun> {
    return this.#admit(request, 'check');
  }

  /** `network: 'none'` only when every host was seen in a network namespace of its own. */
  status(): { readonly network: 'none' | 'shared'; readonly pids: readonly number[] } {
    const processes = this.#hosts.processes;
    const cutOff = processes.every(({ network, isReady }) => !isReady || network === 'none');
    return {
      network: cutOff ? 'none' : 'shared',
      pids: processes.flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
    };
  }

  /** Kills the hosts and settles when they are gone. Runs in flight end as `busy`. */
  close(): Promise<void> {
    return this.#hosts.close();
  }

  async #admit(request: ScriptRequest, purpose: RunPurpose): Promise<ScriptRun> {
    const refused = whyRefused(request);
    if (refused !== undefined) return { result: refused, console: [] };
    const deadline_ms = Math.min(request.deadline_ms ?? DEADLINE_MS_DEFAULT, DEADLINE_MS_MAX);
    const ends_at_ms = monotonicNow() + deadline_ms;
    const admitted = this.#shares.acquire(request.tenant_id);
    if (typeof admitted === 'string') return busy(admitted);
    await admitted;
    try {
      return await this.#start(request, purpose, ends_at_ms);
    } finally {
      this.#shares.release(request.tenant_id);
    }
  }

  #start(request: ScriptRequest, purpose: RunPurpose, ends_at_ms: number): Promise<ScriptRun> {
    if (monotonicNow() >= ends_at_ms) return Promise.resolve(busy('tenant'));
    const { tenant_id, source } = request;
    const script_key = `${tenant_id}/${request.script_version}`;
    const id = ++this.#lastId;
    return new Promise((settle) => {
      const run: PendingRun = {
        message: { kind: 'run', id, script_key, tenant_id, purpose, ends_at_ms, source_length: 0 },
        ...{ tenant_id, script_key, source, request: requestText(request) },
        ...{ settle, host: undefined, losses: 0 },
      };
      this.#pending.set(id, run);
      this.#place(run);
    });
  }

  #place(run: PendingRun): void {
    if (this.#quarantine.holds(run.script_key)) {
      this.#isolate(run);
      return;
    }
    const slot = placeTenant(run.tenant_id, this.#hosts.slots);
    this.#send(run, slot === undefined ? undefined : this.#hosts.at(slot));
  }

  #isolate(run: PendingRun): void {
    if (!this.#quarantine.enter(run)) this.#settle(run, busy('tenant'));
  }

  #send(run: PendingRun, host: HostProcess | undefined, again = false): void {
    if (host === undefined) this.#settle(run, busy('machine'));
    else {
      run.host = host;
      host.send(run.message, run.source, run.request, again);
    }
  }

  #settle(run: PendingRun, ended: ScriptRun): void {
    this.#pending.delete(run.message.id);
    const good = run.message.purpose === 'invoke' && !NOT_GOOD.includes(ended.result.kind);
    this.#quarantine.leave(run, good);
    run.settle(ended);
  }

  #takeResult(host: HostProcess, message: ResultMessage, body: string): void {
    const run = this.#pending.get(message.id);
    // A late answer of a host that the run has left.
    if (run === undefined || run.host !== host) return;
    if (message.ending === 'unknown_script') this.#send(run, host, true);
    else this.#settle(run, { result: readResult(message.ending, body), console: message.console });
  }

  #takeLoss(host: HostProcess, reason: LossReason, suspects: ReadonlySet<number>): void {
    const affected = [...this.#pending.values()].filter((run) => run.host === host);
    const certain = suspects.size === 1 || reason === 'deadline';
    for (const run of affected) {
      const suspected = suspects.has(run.message.id);
      if (reason === 'closed') this.#settle(run, busy('machine'));
      else if (suspected && certain) this.#convict(run, reason);
      else this.#startAgain(run, suspected);
    }
  }

  #convict(run: PendingRun, reason: LossReason): void {
    this.#quarantine.convict(run.script_key);
    const kind = reason === 'deadline' ? 'timeout' : reason === 'memory' ? 'memory' : 'crashed';
    this.#settle(run, { result: { kind }, console: [] });
  }

  #startAgain(run: PendingRun, suspected: boolean): void {
    run.losses += 1;
    run.host = undefined;
    if (run.losses > LOSSES_MAX) this.#settle(run, busy('machine'));
    else if (suspected) this.#isolate(run);
    else this.#place(run);
  }
}

function whyRefused({ source, args = '', configuration = '' }: ScriptRequest) {
  if (Buffer.byteLength(source) > SOURCE_BYTES_MAX) {
    const result: ScriptResult = { kind: 'type', message: 'The code is larger than 1 MiB.' };
    return result;
  }
  if (Buffer.byteLength(args) + Buffer.byteLength(configuration) > REQUEST_BYTES_MAX) {
    return runtimeError('The arguments and the configuration are larger than 11 MiB.');
  }
  return undefined;
}

/** JSON text of what the function gets; `args` and `configuration` are JSON texts already. */
function requestText({ args = 'null', configuration = 'null' }: ScriptRequest): string {
  return `{"args":${args},"configuration":${configuration},"bt":null}`;
}

function busy(scope: 'tenant' | 'machine'): ScriptRun {
  return { result: { kind: 'busy', scope }, console: [] };
}
