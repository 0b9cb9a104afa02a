/**
 * A tenant in a real database whose configuration is the number of changes to each of its things, with
 * what held at each version: an entry of any version can be held against it.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { QueryConfig } from 'pg';
import { recordChange } from '../../../control-plane/config-changes/record-change.ts';
import {
  type ChangeRecord,
  createChangeRecord,
} from '../../../data-plane/config-cache/change-record.ts';
import {
  type CachedEntry,
  createEntryCache,
  type EntryCache,
  type EntryCacheOptions,
} from '../../../data-plane/config-cache/entry-cache.ts';
import { readConfigVersions } from '../../../shared/config-entries/config-version.ts';
import { inTransaction, type Pool, type Queryable } from '../../../shared/postgres/pool.ts';

export interface TestEntry extends CachedEntry {
  readonly thing: string;
  /** How often it was changed. */
  readonly state: number;
}

type States = Record<string, number>;

export class TenantHistory {
  readonly id = crypto.randomUUID();
  /** What held at each version there ever was. */
  readonly at = new Map<string, States>();
  /** Names of the statements since they were last taken. */
  readonly asked: string[] = [];
  readonly failures: unknown[] = [];
  readonly #pool: Pool;
  readonly #open = new Set<Promise<unknown>>();
  #states: States = {};

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async begin(): Promise<string> {
    const version = crypto.randomUUID();
    this.at.set(version, {});
    await this.#pool.query(`INSERT INTO tenants (id, name, config_version) VALUES ($1, '{}', $2)`, [
      this.id,
      version,
    ]);
    return version;
  }

  /** Changes things in one transaction; the version from then on. */
  async change(...things: string[]): Promise<string> {
    return inTransaction(this.#pool, async (client) => {
      const entities = things.map((id) => ({ kind: 'application' as const, id }));
      const { version } = await recordChange(client, this.id, entities);
      // The tenant's row is locked by now: changes follow one another.
      const states = { ...this.#states };
      for (const thing of things) states[thing] = (states[thing] ?? 0) + 1;
      await client.query('UPDATE tenants SET name = $2 WHERE id = $1', [
        this.id,
        JSON.stringify(states),
      ]);
      this.#states = states;
      this.at.set(version, states);
      return version;
    });
  }

  /** Forgets what led to a version. */
  async loseChange(version: string): Promise<void> {
    await this.#pool.query('DELETE FROM config_changes WHERE version = $1', [version]);
  }

  /** When nothing is asked of the database any more. */
  async quiet(): Promise<void> {
    do {
      await Promise.allSettled(this.#open);
      await nextTurn();
    } while (this.#open.size > 0);
  }

  async version(): Promise<string | null> {
    const [reading] = await readConfigVersions(this.#counting(), [this.id]);
    return reading?.config_version ?? null;
  }

  async read(thing: string): Promise<TestEntry | undefined> {
    const { rows } = await this.#counting().query<{ name: string; config_version: string }>({
      name: 'load',
      text: 'SELECT name, config_version FROM tenants WHERE id = $1',
      values: [this.id],
    });
    const row = rows[0];
    if (row === undefined) return undefined;
    const state = (JSON.parse(row.name) as States)[thing] ?? 0;
    const { config_version } = row;
    return { tenant_id: this.id, config_version, slot: `${this.id}/${thing}`, thing, state };
  }

  changesBetween(): ChangeRecord {
    return createChangeRecord(this.#counting());
  }

  cache(options: Partial<EntryCacheOptions<TestEntry>> = {}): EntryCache<TestEntry> {
    return createEntryCache<TestEntry>({
      entries_max: 10_000,
      bytesOf: () => 1,
      changesBetween: this.changesBetween(),
      versionOf: () => this.version(),
      reload: ({ thing }) => this.read(thing),
      concerns: (changed, { thing }) =>
        changed.has(`application/${thing}`) || changed.has('application/everything'),
      onRefresh: () => undefined,
      onWarmFailure: (error) => this.failures.push(error),
      ...options,
    });
  }

  #counting(): Queryable {
    const query = (statement: QueryConfig): Promise<unknown> => {
      this.asked.push(statement.name ?? '');
      const answer = this.#pool.query(statement);
      this.#open.add(answer);
      return answer.finally(() => this.#open.delete(answer));
    };
    return { query } as unknown as Queryable;
  }
}
