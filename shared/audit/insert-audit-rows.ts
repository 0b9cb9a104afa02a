/**
 * The one statement that adds to the audit trail. Each column is one text with a line per row:
 * node-postgres escapes every element of an array by itself, which cost more than the rest of a row.
 */
import type { Queryable } from '../postgres/pool.ts';
import type { AuditEntry } from './audit-entry.ts';

/**
 * Where the rows of a transaction stand in the trail: by its id, so that one can tell when all rows
 * below a position are there. `base` is moved by a restore into a cluster with lower ids.
 */
export const POSITION = `
  (SELECT p.base + pg_current_xact_id()::text::int8 FROM audit_positions p WHERE p.id = 1)`;

interface Column {
  readonly name: keyof AuditEntry;
  readonly type: 'uuid' | 'text' | 'boolean';
  /** An empty line is NULL. */
  read(entry: AuditEntry): string;
}

const COLUMNS: readonly Column[] = [
  { name: 'tenant_id', type: 'uuid', read: ({ tenant_id }) => tenant_id },
  { name: 'actor_type', type: 'text', read: ({ actor_type }) => actor_type },
  { name: 'actor_id', type: 'uuid', read: ({ actor_id }) => actor_id ?? '' },
  { name: 'entity_type', type: 'text', read: ({ entity_type }) => entity_type },
  { name: 'entity_id', type: 'text', read: ({ entity_id }) => lineOf(entity_id ?? '') },
  { name: 'operation', type: 'text', read: ({ operation }) => operation },
  { name: 'via_type', type: 'text', read: ({ via_type }) => via_type ?? '' },
  { name: 'via_id', type: 'uuid', read: ({ via_id }) => via_id ?? '' },
  { name: 'container', type: 'text', read: ({ container }) => lineOf(container ?? '') },
  { name: 'denied', type: 'boolean', read: ({ denied }) => (denied ? 't' : 'f') },
  { name: 'trace_id', type: 'text', read: ({ trace_id }) => lineOf(trace_id) },
];

/** No line break can come in by an id, and none may: it would shift all rows behind it. */
function lineOf(text: string): string {
  return text.includes('\n') ? text.replaceAll('\n', ' ') : text;
}

const arrayOf = (type: string, index: number): string =>
  `string_to_array($${index + 1}, E'\\n', '')${type === 'text' ? '' : `::${type}[]`}`;
const ARRAYS = [...COLUMNS.map(({ type }) => type), 'float8'].map(arrayOf).join(', ');
const NAMES = COLUMNS.map(({ name }) => name).join(', ');

export const INSERT_AUDIT_ROWS = {
  name: 'insert-audit-rows',
  text: `
    INSERT INTO audit_log (${NAMES}, created_at, position)
    SELECT ${NAMES}, clock_now() - r.age_ms * interval '1 ms', ${POSITION}
    FROM unnest(${ARRAYS}) AS r (${NAMES}, age_ms)`,
};

/**
 * Inserts the entries, of which the n-th happened at `times[n]` on the monotonic clock of this process,
 * or just now. The time that is stored is the database's.
 */
export async function insertAuditRows(
  db: Queryable,
  entries: readonly AuditEntry[],
  times: readonly number[],
): Promise<void> {
  const now = performance.now();
  const ages = entries.map((_, index) => String(Math.max(0, now - (times[index] ?? now))));
  const columns = COLUMNS.map(({ read }) => entries.map(read).join('\n'));
  await db.query({ ...INSERT_AUDIT_ROWS, values: [...columns, ages.join('\n')] });
}
