/**
 * How much of the sandbox a tenant may hold: runs that compute, runs that wait for an answer from
 * outside, and runs that wait for their turn. What is over is refused at once, so that a flood of one
 * tenant is a 429 of that tenant and nothing else.
 */

export interface ShareLimits {
  /** Runs of a tenant at the same time, without those that wait for an answer from outside. */
  readonly tenant_running_max: number;
  /** Runs of a tenant that have started and not ended: each holds a context, whatever it waits for. */
  readonly tenant_started_max: number;
  /** Runs of a tenant that wait for their turn. */
  readonly tenant_waiting_max: number;
  /** Runs of all tenants, in all three. */
  readonly machine_max: number;
  /** What the runs of a tenant, of all tenants, hold here until they end: their arguments. */
  readonly tenant_bytes_max: number;
  readonly machine_bytes_max: number;
}

/** What holds when nothing else is said. */
export const SHARE_LIMITS: ShareLimits = {
  tenant_running_max: 32,
  // Waiting for an answer costs a context each, 0.3 MiB, and bounded calls: room for a slow destination.
  tenant_started_max: 128,
  tenant_waiting_max: 128,
  machine_max: 1024,
  tenant_bytes_max: 64 * 1024 * 1024,
  machine_bytes_max: 256 * 1024 * 1024,
};

interface Share {
  /** Started and not waiting for an answer. Above its limit only by runs whose answer has come. */
  running: number;
  started: number;
  bytes: number;
  readonly waiting: { readonly turn: () => void; readonly nested: boolean }[];
}

export class TenantShares {
  readonly #limits: ShareLimits;
  readonly #shares = new Map<string, Share>();
  #total = 0;
  #bytes = 0;

  constructor(limits: Partial<ShareLimits>) {
    this.#limits = { ...SHARE_LIMITS, ...limits };
  }

  /**
   * `started` when the run may start, or a promise that settles when it may; its end must be told by `release`.
   * Otherwise who is over the limit, when it may not even wait. `nested`: a run that is started keeps waiting for this one, so it
   * is refused rather than made to wait for a place that only the end of such a run would free.
   * `bytes`: what it holds until then.
   */
  acquire(
    tenant_id: string,
    nested = false,
    bytes = 0,
  ): 'started' | Promise<void> | 'tenant' | 'machine' {
    const share = this.#shares.get(tenant_id) ?? { running: 0, started: 0, bytes: 0, waiting: [] };
    const refused = this.#whyRefused(share, nested, bytes);
    if (refused !== undefined) return refused;
    this.#shares.set(tenant_id, share);
    this.#total += 1;
    this.#bytes += bytes;
    share.bytes += bytes;
    if (this.#mayStart(share, nested)) {
      this.#start(share);
      return 'started';
    }
    return new Promise((resolve) => {
      const waiter = { turn: resolve, nested };
      // Before those that hold nothing: somebody's context is held until this one has ended.
      if (nested) share.waiting.unshift(waiter);
      else share.waiting.push(waiter);
    });
  }

  /** The run waits for an answer from outside: its place is another's meanwhile. */
  park(tenant_id: string): void {
    const share = this.#shares.get(tenant_id);
    if (share === undefined) return;
    share.running -= 1;
    this.#startWaiting(share);
  }

  /** The answer has come: the run goes on at once, even above the limit for runs that begin. */
  unpark(tenant_id: string): void {
    const share = this.#shares.get(tenant_id);
    if (share !== undefined) share.running += 1;
  }

  /** The run has ended. `parked`: it was waiting for an answer. `bytes`: as when it was admitted. */
  release(tenant_id: string, parked = false, bytes = 0): void {
    const share = this.#shares.get(tenant_id);
    if (share === undefined) return;
    this.#total -= 1;
    this.#bytes -= bytes;
    share.bytes -= bytes;
    share.started -= 1;
    if (!parked) share.running -= 1;
    this.#startWaiting(share);
    if (share.started === 0) this.#shares.delete(tenant_id);
  }

  #whyRefused(share: Share, nested: boolean, bytes: number): 'tenant' | 'machine' | undefined {
    const limits = this.#limits;
    if (share.waiting.length >= limits.tenant_waiting_max) return 'tenant';
    if (nested && share.started >= 2 * limits.tenant_started_max) return 'tenant';
    if (share.bytes + bytes > limits.tenant_bytes_max) return 'tenant';
    const isFull = this.#total >= limits.machine_max;
    return isFull || this.#bytes + bytes > limits.machine_bytes_max ? 'machine' : undefined;
  }

  #mayStart(share: Share, nested: boolean): boolean {
    const { tenant_running_max, tenant_started_max } = this.#limits;
    if (share.running >= tenant_running_max) return false;
    return nested || share.started < tenant_started_max;
  }

  #start(share: Share): void {
    share.running += 1;
    share.started += 1;
  }

  #startWaiting(share: Share): void {
    for (;;) {
      const [next] = share.waiting;
      if (next === undefined || !this.#mayStart(share, next.nested)) return;
      share.waiting.shift();
      this.#start(share);
      next.turn();
    }
  }
}
