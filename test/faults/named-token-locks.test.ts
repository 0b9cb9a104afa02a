/**
 * Changes of tokens that records of idempotency keys name, where they meet: on an id that comes and goes,
 * and on a process that knows nothing yet.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { keyedCreate, newKey } from '../api/idempotency/keyed.ts';
import type { TokenClient } from '../api/tokens/token-client.ts';
import { startVault, type Vault } from '../api/tokens/vault.ts';
import { begin, transactionClient } from '../api/transactions/transaction-client.ts';

const CHURN_MS = 4_000;

describe('tokens that a key names, changed by many', () => {
  let vault: Vault;

  before(async () => {
    vault = await startVault();
  });
  after(() => vault?.stop());

  const json = (id = randomUUID()) => ({ type: 'token', data: 'x', id });

  /** Replaces the token in a transaction that ends when both requests wait for it. */
  async function whileReplaced(id: string, both: () => Promise<{ status: number }>[]) {
    const client = await vault.control.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('CREATE TEMP TABLE kept AS SELECT * FROM tokens WHERE id = $1', [id]);
      await client.query('DELETE FROM tokens WHERE id = $1', [id]);
      await client.query('INSERT INTO tokens SELECT * FROM kept');
      const answers = both();
      await untilWaiting(answers.length);
      await client.query('DROP TABLE kept');
      await client.query('COMMIT');
      return (await Promise.all(answers)).map(({ status }) => status).toSorted();
    } finally {
      client.release();
    }
  }

  async function untilWaiting(count: number): Promise<void> {
    for (;;) {
      const { rows } = await vault.control.pool.query<{ waiting: number }>(
        `SELECT count(*)::int4 AS waiting FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      if (rows[0]?.waiting === count) return;
      await delay(5);
    }
  }

  async function expectNoneAstray(): Promise<void> {
    const { rows } = await vault.control.pool.query(
      `SELECT i.token_id FROM idempotency_records i WHERE i.token_id IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM tokens t WHERE t.id = i.token_id AND t.record_scope = i.scope)`,
    );
    expect(rows).to.deep.equal([]);
  }

  it('are deleted once when two deletions have waited for a replacement', async () => {
    const { id } = (await vault.tokens.create(json())).body;
    const both = () => [vault.tokens.remove(id), vault.tokens.remove(id)];
    expect(await whileReplaced(id, both)).to.deep.equal([204, 404]);
  });

  it('have both changes when two patches have waited for a replacement', async () => {
    const { id } = (await vault.tokens.create(json())).body;
    const both = () =>
      ['a', 'b'].map((name) => vault.tokens.patch(id, { metadata: { [name]: '1' } }));
    expect(await whileReplaced(id, both)).to.deep.equal([200, 200]);
    const { body } = await vault.tokens.read(id);
    expect(body.metadata).to.deep.equal({ a: '1', b: '1' });
  });

  it('are deleted, alone and by commits, on a process that has not met their tenant', async () => {
    const named = async (): Promise<string> =>
      (await keyedCreate(vault.tokens, newKey(), json())).body.id;
    const ids = await Promise.all(Array.from({ length: 40 }, named));
    const staged = await Promise.all(Array.from({ length: 20 }, named));
    const transactions = await Promise.all(staged.map(() => begin(vault.url, vault.key)));
    for (const [n, transaction] of transactions.entries()) {
      expect((await transaction.remove(staged[n] ?? '')).status).to.equal(204);
    }
    const deletions = await vault.later(1);
    const deleted = await Promise.all(ids.map((id) => deletions.remove(id)));
    expect(new Set(deleted.map(({ status }) => status))).to.deep.equal(new Set([204]));
    const commits = await vault.ahead(2);
    const ended = await Promise.all(
      transactions.map(({ id }) => transactionClient(commits, vault.key, id).commit()),
    );
    expect(new Set(ended.map(({ status }) => status))).to.deep.equal(new Set([200]));
    await expectNoneAstray();
  });

  it('come and go under one id, and each creation keeps its answer', async () => {
    const clients: readonly TokenClient[] = [vault.tokens, await vault.later(1)];
    const id = randomUUID();
    const made: { key: string; text: string }[] = [];
    const statuses = new Set<number>();
    const until = Date.now() + CHURN_MS;
    const work = async (by: TokenClient, n: number): Promise<void> => {
      while (Date.now() < until) {
        if (n < 4) {
          const key = newKey();
          const { status, text } = await keyedCreate(by, key, json(id));
          if (status === 201) made.push({ key, text });
          statuses.add(status);
        } else if (n < 6) statuses.add((await by.remove(id)).status);
        else statuses.add((await by.patch(id, { metadata: { n: String(made.length) } })).status);
      }
    };
    const workers = Array.from({ length: 8 }, (_, n) => n);
    await Promise.all(clients.flatMap((by) => workers.map((n) => work(by, n))));
    expect([...statuses].toSorted()).to.deep.equal([200, 201, 204, 404, 409]);
    for (const { key, text } of made) {
      const again = await keyedCreate(vault.tokens, key, json(id));
      expect([again.status, again.text]).to.deep.equal([201, text]);
    }
    await expectNoneAstray();
  }).timeout(60_000);
});
