/**
 * Runs customer scripts in sandbox hosts and answers how they ended. Customer code never comes closer
 * to this process than a pipe. A host that is lost costs its culprit the run; everybody else's run is
 * started again elsewhere, unless it has called out: what acted on the outside never runs twice.
 */
import { findIsolation } from './host-command.ts';
import { rssBytesMax } from './host-memory.ts';
import type { HostProcess, LossReason, Suspects } from './host-process.ts';
import { HostSet } from './host-set.ts';
import { ensureModuleBundles } from './modules/ensure-module-bundles.ts';
import { OutsideCause } from './outside-cause.ts';
import { createPendingRun, type PendingRun } from './pending-run.ts';
import { placeTenant } from './placement.ts';
import {
  type CallMessage,
  type CancelMessage,
  monotonicNow,
  type ResultMessage,
  RUN_ID_MAX,
  type RunPurpose,
  type ScriptRun,
} from './protocol.ts';
import { Quarantine } from './quarantine.ts';
import { busy, INTERRUPTED, isGood, lossOf } from './run-endings.ts';
import { RunTable } from './run-table.ts';
import { endOf, requestBytes, type ScriptRequest, whyRefused } from './script-request.ts';
import { readResult } from './script-result.ts';
import { type ShareLimits, TenantShares } from './tenant-shares.ts';

/** Limits that are absent are the usual ones. */
export interface SupervisorOptions extends Partial<ShareLimits> {
  /** Hosts that tenants are placed on. */
  readonly host_count: number;
  /** A spare, and a quarantine host when needed (default). Without, a lost host is just started again. */
  readonly spares?: boolean;
  /** Threads of each host: tenants that can compute there at the same time. */
  readonly thread_count?: number;
  /** A host above this is killed. Covers the isolates of all its threads. */
  readonly rss_bytes_max?: number;
  /** Where bundled npm modules are kept, as below DATA_DIR. Default: beside the installed packages. */
  readonly modules_folder?: string;
  /** Refuse to start when hosts cannot be cut off from the network. */
  readonly strict: boolean;
  /** A host ended other than by `close`. `how`: the signal or exit code, unless it was killed here. */
  readonly onHostLost?: (reason: LossReason, how: string | undefined) => void;
  /** A host could not be started in place of a lost one, and will be tried again. */
  readonly onHostFailed?: (error: unknown) => void;
}

export interface SandboxStatus {
  /** `none` only when every host was seen in a network namespace of its own. */
  readonly network: 'none' | 'shared';
  /** Of all hosts, ready or not. */
  readonly pids: readonly number[];
  readonly ready_count: number;
}

export type { ScriptRequest } from './script-request.ts';

const THREAD_COUNT_DEFAULT = 4;
/** Lost hosts that a run may survive as a bystander. */
const LOSSES_MAX = 3;

export class Supervisor {
  readonly #hosts: HostSet;
  readonly #shares: TenantShares;
  readonly #quarantine: Quarantine<PendingRun>;
  readonly #outsideCause = new OutsideCause();
  readonly #pending = new RunTable<PendingRun>();
  readonly #thread_count: number;
  readonly #spares: boolean;
  #lastId = 0;

  private constructor(hosts: HostSet, options: SupervisorOptions) {
    this.#hosts = hosts;
    this.#thread_count = options.thread_count ?? THREAD_COUNT_DEFAULT;
    this.#spares = options.spares ?? true;
    this.#shares = new TenantShares(options);
    this.#quarantine = new Quarantine((run) => this.#send(run, this.#hosts.quarantine()));
  }

  /** Starts the hosts and settles when they can run scripts. Throws when they cannot. */
  static async start(options: SupervisorOptions): Promise<Supervisor> {
    const isolation = findIsolation();
    const thread_count = options.thread_count ?? THREAD_COUNT_DEFAULT;
    if (options.strict && isolation.network !== 'none') {
      throw new Error('sandbox hosts cannot be cut off from the network on this system');
    }
    const hosts: HostSet = new HostSet({
      isolation,
      modules_folder: await ensureModuleBundles(options.modules_folder),
      slot_count: options.host_count,
      spares: options.spares ?? true,
      thread_count,
      rss_bytes_max: options.rss_bytes_max ?? rssBytesMax(thread_count),
      onResult: (host, result, body) => supervisor.#takeResult(host, result, body),
      onCall: (host, message, body) => supervisor.#takeCall(host, message, body),
      onLost: (host, reason, suspects, how) => {
        if (reason !== 'closed') options.onHostLost?.(reason, how);
        supervisor.#takeLoss(host, reason, suspects);
      },
      onFailed: options.onHostFailed,
    });
    const supervisor = new Supervisor(hosts, options);
    await hosts.start();
    const network = supervisor.status().network;
    if (options.strict && network !== 'none') {
      await hosts.close();
      throw new Error('a sandbox host was not cut off from the network');
    }
    return supervisor;
  }

  /** Calls the script's function with `{args, configuration, bt}`. Never rejects. */
  run(request: ScriptRequest): Promise<ScriptRun> {
    return this.#admit(request, 'invoke');
  }

  /** Compiles and loads the script without calling its function: `ok` with `null` when it is one. */
  check(request: ScriptRequest): Promise<ScriptRun> {
    return this.#admit(request, 'check');
  }

  status(): SandboxStatus {
    const processes = this.#hosts.processes;
    const cutOff = processes.every(({ network, isReady }) => !isReady || network === 'none');
    return {
      network: cutOff ? 'none' : 'shared',
      pids: processes.flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
      ready_count: processes.filter(({ isReady }) => isReady).length,
    };
  }

  /** Kills the hosts and settles when they are gone. Runs in flight end as `busy`. */
  close(): Promise<void> {
    return this.#hosts.close();
  }

  #admit(request: ScriptRequest, purpose: RunPurpose): Promise<ScriptRun> {
    const bytes = requestBytes(request);
    const refused = whyRefused(request, bytes);
    if (refused !== undefined) return Promise.resolve({ result: refused, console: [] });
    const { tenant_id, nested } = request;
    const ends_at_ms = endOf(request);
    const admitted = this.#shares.acquire(tenant_id, nested, bytes);
    const begin = () => this.#begin(request, bytes, purpose, ends_at_ms);
    if (admitted === 'started') return begin();
    return typeof admitted === 'string' ? Promise.resolve(busy(admitted)) : admitted.then(begin);
  }

  /** Of a request that was admitted: its share is given back at the end, whatever that is. */
  #begin(
    request: ScriptRequest,
    bytes: number,
    purpose: RunPurpose,
    ends_at_ms: number,
  ): Promise<ScriptRun> {
    // Nothing that lasts as long as the run may be a closure over `request`, whose texts it would keep.
    const { promise, resolve, reject } = Promise.withResolvers<ScriptRun>();
    const id = this.#nextId();
    const run = createPendingRun(request, { id, purpose, ends_at_ms }, (waits) =>
      this.#park(run, waits),
    );
    const release = () => this.#shares.release(run.tenant_id, run.parked, bytes);
    run.settle = (ended) => {
      release();
      resolve(ended);
    };
    if (monotonicNow() >= ends_at_ms) run.settle(busy('tenant'));
    else {
      this.#pending.set(run.message.id, run);
      try {
        this.#place(run);
      } catch (error) {
        // Settled like any other, so that nothing of it is left; only what is told differs.
        run.settle = () => {
          release();
          reject(error);
        };
        this.#settle(run, busy('machine'));
      }
    }
    return promise;
  }

  /** Ids that rise, and begin again long after those before have ended. */
  #nextId(): number {
    this.#lastId = this.#lastId === RUN_ID_MAX ? 1 : this.#lastId + 1;
    return this.#lastId;
  }

  #park(run: PendingRun, waits: boolean): void {
    run.parked = waits;
    if (waits) this.#shares.park(run.tenant_id);
    else this.#shares.unpark(run.tenant_id);
  }

  #place(run: PendingRun): void {
    const isDear = this.#spares && this.#hosts.at('spare')?.isReady !== true;
    if (this.#quarantine.holds(run, isDear)) {
      this.#isolate(run);
      return;
    }
    const slot = placeTenant(run.tenant_id, this.#hosts.slots);
    this.#send(run, slot === undefined ? undefined : this.#hosts.at(slot));
  }

  #isolate(run: PendingRun): void {
    // One that is there already goes on in the next host.
    if (this.#quarantine.has(run)) this.#send(run, this.#hosts.quarantine());
    else if (!this.#quarantine.enter(run)) this.#settle(run, busy('tenant'));
  }

  #send(run: PendingRun, host: HostProcess | undefined): void {
    if (host === undefined) this.#settle(run, busy('machine'));
    else {
      run.host = host;
      host.send(run);
    }
  }

  #settle(run: PendingRun, ended: ScriptRun): void {
    // Once: with its end goes its share.
    if (!this.#pending.delete(run.message.id)) return;
    run.calls.end();
    const good = run.message.purpose === 'invoke' && isGood(ended);
    this.#quarantine.leave(run, good);
    run.settle(ended);
  }

  #takeResult(host: HostProcess, message: ResultMessage, body: string): void {
    const run = this.#pending.get(message.id);
    // A late answer of a host that the run has left.
    if (run === undefined || run.host !== host) return;
    const result = readResult(message.ending, body, run.deadline_ms);
    this.#settle(run, { result, console: message.console });
  }

  #takeCall(host: HostProcess, message: CallMessage | CancelMessage, body: string): void {
    const run = this.#pending.get(message.id);
    if (run === undefined || run.host !== host) return;
    if (message.kind === 'call') run.calls.take(message, body);
    else run.calls.cancel(message.call);
  }

  #takeLoss(host: HostProcess, reason: LossReason, { held, placed, ids, seen }: Suspects): void {
    if (reason === 'ended' && !held && host.isReady) this.#outsideCause.idleLost();
    const affected = this.#pending.values().filter((run) => run.host === host);
    for (const run of affected) {
      run.host = undefined;
      if (reason === 'closed')
        this.#settle(run, run.calls.calledOut ? INTERRUPTED : busy('machine'));
      // No script has run in one that was not ready.
      else if (host.isReady && ids.has(run.message.id)) {
        void this.#judge(run, reason, seen, ids.size);
      } else if (host.isReady && !placed.has(run.message.id)) this.#place(run);
      else this.#startAgain(run, false);
    }
  }

  /**
   * A suspect is blamed at once, so that its next run is one whose fault can be seen; where the loss
   * turns out to have an outside cause, that is taken back.
   */
  async #judge(run: PendingRun, reason: LossReason, seen: boolean, count: number): Promise<void> {
    const { calledOut } = run.calls;
    // Without quarantine nothing else would end a script that ends every host at once.
    const known = seen || !this.#spares || this.#quarantine.isAlone(run);
    const certain = reason === 'deadline' || (count === 1 && known);
    let acquit: (() => void) | undefined;
    if (this.#spares && certain) acquit = this.#quarantine.convict(run);
    else if (this.#spares && count <= this.#thread_count)
      acquit = calledOut ? this.#quarantine.suspect(run) : this.#quarantine.doubt(run);
    const innocent = reason === 'ended' && (await this.#outsideCause.ofLoss());
    if (innocent) acquit?.();
    // Where the script runs next, if it does: started meanwhile.
    else if (this.#spares) this.#hosts.quarantine();
    if (certain && !innocent) this.#settle(run, lossOf(reason, run.deadline_ms));
    else this.#startAgain(run, true);
  }

  /** What may have acted on the outside never runs twice. A suspect runs where its fault can be seen. */
  #startAgain(run: PendingRun, suspected: boolean): void {
    run.losses += 1;
    if (run.calls.calledOut) this.#settle(run, INTERRUPTED);
    else if (run.losses > LOSSES_MAX) this.#settle(run, busy('machine'));
    else if (suspected && this.#spares) this.#isolate(run);
    else this.#place(run);
  }
}
