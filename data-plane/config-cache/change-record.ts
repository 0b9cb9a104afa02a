/**
 * Which configuration changed between two versions of a tenant. Versions are random and have no
 * order, so the record of changes is walked back from the newer one.
 */
import type { Queryable } from '../../shared/postgres/pool.ts';

/** More changes than this behind: everything of the tenant is read anew, which costs less. */
const STEPS_MAX = 64;

/** Changed entities as `kind/id`. */
export type ChangedNames = ReadonlySet<string>;

/**
 * Resolves to what changed from version `from` to version `to`, or to `undefined` when `from` is not
 * found within the last changes before `to` (long ago, removed, or newer): anything may have changed.
 */
export type ChangeRecord = (
  tenantId: string,
  from: string,
  to: string,
) => Promise<ChangedNames | undefined>;

/** After a change all entries of a tenant ask the same question: they share one query. */
export function createChangeRecord(db: Queryable): ChangeRecord {
  const asking = new Map<string, Promise<ChangedNames | undefined>>();
  return (tenantId, from, to) => {
    // Versions are random: two of them are as good as the tenant's name.
    const question = `${from}/${to}`;
    let answer = asking.get(question);
    if (answer === undefined) {
      answer = readChanges(db, tenantId, from, to).finally(() => asking.delete(question));
      asking.set(question, answer);
    }
    return answer;
  };
}

async function readChanges(
  db: Queryable,
  tenantId: string,
  from: string,
  to: string,
): Promise<ChangedNames | undefined> {
  const { rows } = await db.query<{ entities: string[]; previous_version: string }>({
    name: 'config-changes-between',
    text: `
      WITH RECURSIVE walk AS (
        SELECT $3::uuid AS version, 0 AS step
        UNION ALL
        SELECT c.previous_version, w.step + 1 FROM walk w
        CROSS JOIN LATERAL (
          SELECT previous_version FROM config_changes
          WHERE tenant_id = $1 AND version = w.version LIMIT 1
        ) c WHERE w.version <> $2 AND w.step < ${STEPS_MAX}
      )
      SELECT c.previous_version, array_agg(c.kind || '/' || c.id) AS entities
      FROM walk w JOIN config_changes c ON c.tenant_id = $1 AND c.version = w.version
      WHERE w.version <> $2
      GROUP BY c.version, c.previous_version`,
    values: [tenantId, from, to],
  });
  if (!rows.some((row) => row.previous_version === from)) return undefined;
  return new Set(rows.flatMap((row) => row.entities));
}
