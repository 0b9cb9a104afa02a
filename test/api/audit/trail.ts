/** What tests of the audit trail read of it, and how they bring it about. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { AuditEntry } from '../../../shared/audit/audit-entry.ts';
import { insertAudit } from '../../../shared/audit/write-audit.ts';
import { inTransaction, type Pool } from '../../../shared/postgres/pool.ts';

/** A read of a token by an application, both new, unless said otherwise. */
export function entryOf(own: Partial<AuditEntry> = {}): AuditEntry {
  return {
    tenant_id: '11111111-1111-4111-8111-111111111111',
    ...{ actor_type: 'application', actor_id: randomUUID() },
    ...{ entity_type: 'token', entity_id: randomUUID(), operation: 'read' },
    ...{ container: '/general/', denied: false, trace_id: randomUUID() },
    ...own,
  };
}

/** Writes each entry in a transaction of its own. */
export async function writeEach(pool: Pool, entries: readonly AuditEntry[]): Promise<void> {
  for (const entry of entries) await inTransaction(pool, (client) => insertAudit(client, [entry]));
}

export type TrailRow = Omit<AuditEntry, 'via_type' | 'via_id' | 'container'> & {
  via_type: string | null;
  via_id: string | null;
  container: string | null;
};

/** A tenant's rows, the oldest first; those of one request by `trace_id`. */
export async function trailOf(
  pool: Pool,
  tenantId: string,
  trace_id?: string | null,
): Promise<TrailRow[]> {
  const { rows } = await pool.query<TrailRow>(
    `SELECT tenant_id, actor_type, actor_id, entity_type, entity_id, operation, via_type, via_id,
       container, denied, trace_id
     FROM audit_log WHERE tenant_id = $1 AND ($2::text IS NULL OR trace_id = $2)
     ORDER BY created_at, position, id`,
    [tenantId, trace_id ?? null],
  );
  return rows;
}

/** Settles when all transactions that have begun by now, on the whole server, have ended. */
export async function settled(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ next: string }>(
    'SELECT pg_snapshot_xmax(pg_current_snapshot()) AS next',
  );
  for (;;) {
    const { rowCount } = await pool.query(
      'SELECT 1 WHERE pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8',
      [rows[0]?.next],
    );
    if (rowCount === 1) return;
    await delay(5);
  }
}
