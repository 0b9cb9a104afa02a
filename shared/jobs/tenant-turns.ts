/**
 * Which tenants get the free places of a process, and how many each: what a tenant may hold of them
 * is bounded, and who was served last comes last.
 */
import type { Queryable } from '../postgres/pool.ts';
import {
  claimJobs,
  FIRST_TENANT,
  isAnyDue,
  type JobClaim,
  nextTenants,
  TENANTS_MAX,
  type TenantShare,
} from './claim-jobs.ts';
import type { JobKind } from './job-store.ts';

export class TenantTurns {
  readonly #kind: JobKind;
  readonly #running = new Map<string, number>();
  #after = FIRST_TENANT;

  constructor(kind: JobKind) {
    this.#kind = kind;
  }

  /** Claims up to `free` jobs; none when there is nothing due that may be claimed. */
  async claim(db: Queryable, free: number): Promise<JobClaim[]> {
    if (!(await isAnyDue(db, this.#kind))) return [];
    // The rest of the circle from where it stands, then from its beginning: once all the way round.
    const began = this.#after;
    let wrapped = began === FIRST_TENANT;
    const isRound = (): boolean => began !== FIRST_TENANT && this.#after >= began;
    for (;;) {
      const tenants = await nextTenants(db, this.#kind, this.#after);
      const due = tenants.flatMap((tenant) => (tenant.due ? [tenant.tenant_id] : []));
      const claimed = await this.#claimOf(db, due, free);
      if (claimed.length > 0) return claimed;
      const isEnd = tenants.length < TENANTS_MAX;
      this.#after = isEnd ? FIRST_TENANT : (tenants.at(-1)?.tenant_id ?? FIRST_TENANT);
      if (wrapped && (isEnd || isRound())) return [];
      wrapped ||= isEnd;
    }
  }

  async #claimOf(db: Queryable, due: readonly string[], free: number): Promise<JobClaim[]> {
    const shares = this.#shares(due, free);
    if (shares.length === 0) return [];
    const claimed = await claimJobs(db, this.#kind, shares, free);
    for (const { tenant_id } of claimed) this.#add(tenant_id, 1);
    const served = new Set(claimed.map(({ tenant_id }) => tenant_id));
    this.#after =
      shares.findLast(({ tenant_id }) => served.has(tenant_id))?.tenant_id ?? this.#after;
    return claimed;
  }

  /**
   * A tenant holds no more places than stay free beside it: one alone half of them, two a third
   * each, and so on. However long jobs take, a tenant without any finds one while there are more places
   * than tenants.
   */
  #shares(due: readonly string[], free: number): TenantShare[] {
    return due.flatMap((tenant_id) => {
      const running = this.#running.get(tenant_id) ?? 0;
      const more = Math.floor((free - running) / (due.length + 1));
      const count = Math.max(more, running === 0 ? 1 : 0);
      return count > 0 ? [{ tenant_id, count }] : [];
    });
  }

  /** A job of the tenant ended. */
  release(tenant_id: string): void {
    this.#add(tenant_id, -1);
  }

  #add(tenant_id: string, change: number): void {
    const count = (this.#running.get(tenant_id) ?? 0) + change;
    if (count > 0) this.#running.set(tenant_id, count);
    else this.#running.delete(tenant_id);
  }
}
