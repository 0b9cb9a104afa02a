/**
 * How much of the sandbox a tenant may hold: runs at a time, and runs that wait for one of those. What
 * is over is refused at once, so that a flood of one tenant is a 429 of that tenant and nothing else.
 */

export interface ShareLimits {
  /** Runs of a tenant at the same time. */
  readonly tenant_running_max: number;
  /** Runs of a tenant that wait for their turn. */
  readonly tenant_waiting_max: number;
  /** Runs of all tenants, running or waiting. */
  readonly machine_max: number;
}

interface Share {
  running: number;
  readonly waiting: (() => void)[];
}

export class TenantShares {
  readonly #limits: ShareLimits;
  readonly #shares = new Map<string, Share>();
  #total = 0;

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  /**
   * Settles when the run may start; its end must be told by `release`. Answers at once who is over the
   * limit when it may not even wait.
   */
  acquire(tenant_id: string): Promise<undefined> | 'tenant' | 'machine' {
    const share = this.#shares.get(tenant_id) ?? { running: 0, waiting: [] };
    if (share.waiting.length >= this.#limits.tenant_waiting_max) return 'tenant';
    if (this.#total >= this.#limits.machine_max) return 'machine';
    this.#shares.set(tenant_id, share);
    this.#total += 1;
    if (share.running < this.#limits.tenant_running_max) {
      share.running += 1;
      return Promise.resolve(undefined);
    }
    return new Promise((resolve) => share.waiting.push(() => resolve(undefined)));
  }

  release(tenant_id: string): void {
    const share = this.#shares.get(tenant_id);
    if (share === undefined) return;
    this.#total -= 1;
    const next = share.waiting.shift();
    if (next === undefined) share.running -= 1;
    else next();
    if (share.running === 0) this.#shares.delete(tenant_id);
  }
}
