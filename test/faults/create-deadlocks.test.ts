/**
 * Creates of different processes that want the same ids, in different order: whoever can choose both the
 * ids and the order must not be able to make two statements wait for each other, with everybody in them.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import pg from 'pg';
import { createDataKeys } from '../../shared/crypto/data-keys.ts';
import { encodeDraft, type TokenDraft } from '../../shared/tokens/token-draft.ts';
import { insertTokens, type TokenInsert } from '../../shared/tokens/token-writer.ts';
import { startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';

describe('creates of the same ids in different order', () => {
  let control: TestControlPlane;
  /** Without limits of time. */
  let clients: [holder: pg.Client, one: pg.Client, two: pg.Client];
  const pids: number[] = [];
  before(async () => {
    control = await startTestControlPlane();
    const { adminConnectionString: connectionString } = control.database;
    const client = () => new pg.Client({ connectionString });
    clients = [client(), client(), client()];
    for (const one of clients) {
      await one.connect();
      pids.push((await one.query('SELECT pg_backend_pid() AS pid')).rows[0].pid);
    }
  });
  after(async () => {
    for (const client of clients ?? []) await client.end();
    await control?.stop();
  });

  async function insertsOf(ids: readonly string[]): Promise<TokenInsert[]> {
    const { id: tenant_id } = control.tenant;
    const keys = await createDataKeys(control.pool, control.installation).forTenant(tenant_id);
    const { rows } = await control.pool.query('SELECT config_version FROM tenants WHERE id = $1', [
      tenant_id,
    ]);
    const draft: TokenDraft = {
      ...{ type: 'token' as const, data: 'x', mask: undefined, container: '/general/' },
      ...{ metadata: undefined, search_indexes: [], fingerprint_expression: undefined },
      expires_at_ms: null,
    };
    return ids.map((id) => ({
      ...{ tenant_id, config_version: rows[0].config_version, cvc: undefined },
      token: encodeDraft(draft, id, tenant_id, keys),
      created_by: randomUUID(),
    }));
  }

  const waiting = async (): Promise<number> => {
    const { rows } = await control.pool.query(
      'SELECT count(*)::int4 AS n FROM pg_locks WHERE NOT granted AND pid = ANY($1)',
      [pids],
    );
    return rows[0].n;
  };

  it('wait in turn, never for each other', async () => {
    const [one, two] = await Promise.all([
      insertsOf(['a-first', 'b-held-by-one', 'c-last']),
      insertsOf(['c-last', 'b-held-by-two', 'a-first']),
    ]);
    const [holder, ...writers] = clients;
    // Somebody has an id of each in the middle, for as long as both have begun.
    await holder.query('BEGIN');
    await holder.query(
      `INSERT INTO tokens (tenant_id, id, type, container, sealed, created_by)
       SELECT $1, id, 'token', '/', '', $1 FROM unnest($2::text[]) AS id`,
      [control.tenant.id, ['b-held-by-one', 'b-held-by-two']],
    );
    const first = insertTokens(writers[0], one);
    while ((await waiting()) < 1) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = insertTokens(writers[1], two);
    while ((await waiting()) < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    await holder.query('ROLLBACK');
    const outcome = async (results: typeof first) => (await results).map(({ problem }) => problem);
    expect(await outcome(first)).to.deep.equal([null, null, null]);
    expect(await outcome(second)).to.deep.equal(['conflict', null, 'conflict']);
  });
});
