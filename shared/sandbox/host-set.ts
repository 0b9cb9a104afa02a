/**
 * The hosts of a machine: one per slot, a warm spare that takes over from a lost one, and, from the day
 * that one is needed, the quarantine host. Replaces what ends, ever more slowly while hosts do not even
 * start.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type HostOptions, HostProcess } from './host-process.ts';
import { monotonicNow } from './protocol.ts';

/** Wait before the next try when a host ended before it was ready; doubles up to the longest. */
const RESTART_MS = 100;
const RESTART_MS_MAX = 5_000;

type Role = number | 'spare' | 'quarantine';

export interface HostSetOptions extends Omit<HostOptions, 'onResult' | 'onCall' | 'onLost'> {
  readonly slot_count: number;
  /** Without: no spare and no quarantine host; a lost host is missing until another has started. */
  readonly spares: boolean;
  readonly onResult: (host: HostProcess, ...of: Parameters<HostOptions['onResult']>) => void;
  readonly onCall: (host: HostProcess, ...of: Parameters<HostOptions['onCall']>) => void;
  readonly onLost: (host: HostProcess, ...of: Parameters<HostOptions['onLost']>) => void;
  /** A host could not even be begun; it is tried again. */
  readonly onFailed?: ((error: unknown) => void) | undefined;
}

export class HostSet {
  readonly #options: HostSetOptions;
  readonly #hosts = new Map<Role, HostProcess>();
  readonly #all = new Set<HostProcess>();
  /** Hosts that ended before they were ready, since the last one that was. */
  #failures = 0;
  #notBefore_ms = 0;
  #closed = false;

  constructor(options: HostSetOptions) {
    this.#options = options;
  }

  /** Starts all hosts. Throws with the last words of one that does not start; none is left then. */
  async start(): Promise<void> {
    const slots = Array.from({ length: this.#options.slot_count }, (_item, slot) => slot);
    const beside = this.#options.spares ? (['spare'] as const) : [];
    try {
      const hosts = [...slots, ...beside].map((role) => this.#spawn(role));
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

  at(role: number | 'spare'): HostProcess | undefined {
    return this.#hosts.get(role);
  }

  /**
   * Started when it is asked for: most machines never need one. `undefined` when there can be none now,
   * since hosts do not even start, or are closed.
   */
  quarantine(): HostProcess | undefined {
    const known = this.#hosts.get('quarantine');
    if (known !== undefined || this.#closed || monotonicNow() < this.#notBefore_ms) return known;
    try {
      return this.#spawn('quarantine');
    } catch (error) {
      this.#options.onFailed?.(error);
      this.#noteFailure();
      return undefined;
    }
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

  /** Throws when the system gives it no process or no pipe, or its code is not ours any more. */
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
      onLost: (...loss) => {
        this.#all.delete(host);
        if (!isReady) this.#noteFailure();
        this.#replace(host);
        onLost(host, ...loss);
      },
    });
    this.#all.add(host);
    this.#hosts.set(role, host);
    host.ready.then(
      () => {
        isReady = true;
        this.#failures = 0;
        this.#notBefore_ms = 0;
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
    // Whoever runs there next starts it: the spare is for tenants who are at no fault.
    if (role === 'quarantine') return;
    const spare = this.#hosts.get('spare');
    if (role === 'spare' || spare === undefined) return void this.#spawnLater(role);
    this.#hosts.set(role, spare);
    this.#hosts.delete('spare');
    void this.#spawnLater('spare');
  }

  async #spawnLater(role: Role): Promise<void> {
    for (;;) {
      const wait_ms = this.#notBefore_ms - monotonicNow();
      if (wait_ms > 0) await delay(wait_ms, undefined, { ref: false });
      if (this.#closed || this.#hosts.has(role)) return;
      try {
        this.#spawn(role);
        return;
      } catch (error) {
        this.#options.onFailed?.(error);
        this.#noteFailure();
      }
    }
  }

  #noteFailure(): void {
    this.#failures += 1;
    const wait_ms = Math.min(RESTART_MS * 2 ** this.#failures, RESTART_MS_MAX);
    this.#notBefore_ms = monotonicNow() + wait_ms;
  }
}
