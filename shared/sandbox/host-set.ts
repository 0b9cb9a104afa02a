/**
 * The hosts of a machine: one per slot, a warm spare that takes over from a lost one, and the
 * quarantine host. Replaces what ends, ever more slowly while hosts do not even start.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type HostOptions, HostProcess } from './host-process.ts';

/** Wait before the next try when a host ended before it was ready; doubles up to the longest. */
const RESTART_MS = 100;
const RESTART_MS_MAX = 5_000;

export type Role = number | 'spare' | 'quarantine';

export interface HostSetOptions extends Omit<HostOptions, 'onResult' | 'onCall' | 'onLost'> {
  readonly slot_count: number;
  /** Without: no spare and no quarantine host; a lost host is missing until another has started. */
  readonly spares: boolean;
  readonly onResult: (host: HostProcess, ...of: Parameters<HostOptions['onResult']>) => void;
  readonly onCall: (host: HostProcess, ...of: Parameters<HostOptions['onCall']>) => void;
  readonly onLost: (host: HostProcess, ...of: Parameters<HostOptions['onLost']>) => void;
}

export class HostSet {
  readonly #options: HostSetOptions;
  readonly #hosts = new Map<Role, HostProcess>();
  readonly #all = new Set<HostProcess>();
  #failures = 0;
  #closed = false;

  constructor(options: HostSetOptions) {
    this.#options = options;
  }

  /** Starts all hosts. Throws with the last words of one that does not start; none is left then. */
  async start(): Promise<void> {
    const slots = Array.from({ length: this.#options.slot_count }, (_item, slot) => slot);
    const beside = this.#options.spares ? (['spare', 'quarantine'] as const) : [];
    const hosts = [...slots, ...beside].map((role) => this.#spawn(role));
    try {
      await Promise.all(hosts.map((host) => host.ready));
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Slots that have a host now. */
  get slots(): number[] {
    return [...this.#hosts.keys()].filter((role) => typeof role === 'number');
  }

  at(role: Role): HostProcess | undefined {
    return this.#hosts.get(role);
  }

  get processes(): readonly HostProcess[] {
    return [...this.#all];
  }

  async close(): Promise<void> {
    this.#closed = true;
    const all = [...this.#all];
    for (const host of all) host.kill('closed');
    await Promise.all(all.map((host) => host.exited));
  }

  #spawn(role: Role): HostProcess {
    const {
      onResult,
      onCall,
      onLost,
      slot_count: _count,
      spares: _spares,
      ...options
    } = this.#options;
    let isReady = false;
    const host: HostProcess = new HostProcess({
      ...options,
      onResult: (result, body) => onResult(host, result, body),
      onCall: (message, body) => onCall(host, message, body),
      onLost: (reason, suspects) => {
        this.#all.delete(host);
        if (!isReady) this.#failures += 1;
        this.#replace(host);
        onLost(host, reason, suspects);
      },
    });
    this.#all.add(host);
    this.#hosts.set(role, host);
    host.ready.then(
      () => {
        isReady = true;
        this.#failures = 0;
      },
      () => undefined,
    );
    return host;
  }

  #replace(lost: HostProcess): void {
    const role = [...this.#hosts].find(([, host]) => host === lost)?.[0];
    if (role === undefined) return;
    this.#hosts.delete(role);
    if (this.#closed) return;
    const spare = this.#hosts.get('spare');
    // The spare is for tenants who are at no fault: a killer waits until its host has started.
    if (typeof role !== 'number' || spare === undefined) return void this.#spawnLater(role);
    this.#hosts.set(role, spare);
    this.#hosts.delete('spare');
    void this.#spawnLater('spare');
  }

  async #spawnLater(role: Role): Promise<void> {
    if (this.#failures > 0) {
      const wait_ms = Math.min(RESTART_MS * 2 ** this.#failures, RESTART_MS_MAX);
      await delay(wait_ms, undefined, { ref: false });
    }
    if (!this.#closed && !this.#hosts.has(role)) this.#spawn(role);
  }
}
