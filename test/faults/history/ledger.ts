/**
 * What the clients of a history know: which effects were acknowledged, which may or may not have
 * happened, and what was seen that must never be seen.
 */
import type { HistoryTenant } from './world.ts';

export interface KnownToken {
  readonly id: string;
  /** The operation that made it; its data begin with the tenant's mark and end with this. */
  readonly op: string;
  readonly tenant: HistoryTenant;
  /** Metadata names that acknowledged patches have added. */
  readonly patched: Set<string>;
  /** Patches that were sent at all. */
  patches: number;
  /** From the moment the first delete is sent it may be gone. */
  deletesSent: number;
  /** Deletes that nobody was told the end of. */
  deletesUntold: number;
  /** On the clock of this process: reads that begin later must not find it. */
  deletedAt: number | undefined;
  /** Deletes that were acknowledged: at most one. */
  deletes: number;
  /** Answers that showed it. */
  reads: number;
}

/** A reaction that was accepted to be run later. */
export interface AcceptedReaction {
  readonly op: string;
  readonly tenant: HistoryTenant;
  readonly requestId: string;
}

export class Ledger {
  readonly tokens = new Map<string, KnownToken>();
  readonly accepted: AcceptedReaction[] = [];
  /** Operations whose end nobody was told. */
  readonly unknown = new Set<string>();
  /** Operations that were told to have had no effect: rolled back, or interrupted. */
  readonly undone = new Set<string>();
  readonly violations: string[] = [];
  /** Tokens that were missed. */
  readonly lost = new Set<string>();
  /** Answers by status; 0 is none. */
  readonly statuses = new Map<string, number>();
  readonly #beganAt = performance.now();
  #ops = 0;

  newOp(kind: string): string {
    this.#ops += 1;
    return `${kind}-${this.#ops}`;
  }

  get ops(): number {
    return this.#ops;
  }

  acknowledge(tenant: HistoryTenant, op: string, ids: readonly string[]): void {
    for (const id of ids) {
      if (this.tokens.has(id)) this.violate(`${op}: acknowledged with the token of another`);
      const counts = { patches: 0, deletesSent: 0, deletesUntold: 0, deletes: 0, reads: 0 };
      const fresh = { patched: new Set<string>(), deletedAt: undefined };
      this.tokens.set(id, { id, op, tenant, ...counts, ...fresh });
    }
  }

  accept(tenant: HistoryTenant, op: string, requestId: string): void {
    this.accepted.push({ op, tenant, requestId });
  }

  /** Tokens of the tenant, dead or alive. */
  of(tenant: HistoryTenant): KnownToken[] {
    return [...this.tokens.values()].filter((token) => token.tenant === tenant);
  }

  count(line: string, status: number): void {
    const name = `${line.split(' ')[0]} ${(line.split(' ')[1] ?? '').split('/')[1]} ${status}`;
    this.statuses.set(name, (this.statuses.get(name) ?? 0) + 1);
  }

  violate(what: string): void {
    this.violations.push(`${Math.round(performance.now() - this.#beganAt)} ms: ${what}`);
  }
}

/** The text that a token of `op` holds. */
export const dataOf = (tenant: HistoryTenant, op: string): string => `${tenant.mark} ${op}`;
