/**
 * A commit may take a while, and whoever wants one of its ids meanwhile is told so at once: concurrent
 * creates share a statement, also those of different tenants, and one that waited would hold up all.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import pg from 'pg';
import { applyStaged } from '../../shared/transactions/commit-transaction.ts';
import { endTransaction } from '../../shared/transactions/transaction-store.ts';
import { expectProblem, type TokenClient, tokenClient } from '../api/tokens/token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from '../api/tokens/vault.ts';
import { begin, type TransactionClient } from '../api/transactions/transaction-client.ts';
import { answerSealing } from '../support/answer-sealing.ts';

const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));

describe('neighbours of a commit that is under way', () => {
  let vault: Vault;
  let neighbour: TokenClient;
  let neighbourKey: string;
  let client: pg.Client;
  before(async () => {
    vault = await startVault();
    const tenant = await vault.control.addTenant('Initech');
    neighbourKey = await vault.keyWith({ rules: REVEAL_ALL }, tenant);
    neighbour = tokenClient(vault.url, neighbourKey);
    client = new pg.Client({ connectionString: vault.control.database.adminConnectionString });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await vault?.stop();
  });

  const STAGED: [string, (transaction: TransactionClient) => Promise<string>][] = [
    ['assigned', async (transaction) => (await transaction.created({ type: 'token', data: 1 })).id],
    [
      'chosen',
      async (transaction) =>
        (await transaction.created({ type: 'token', data: 1, id: `chosen-${randomUUID()}` })).id,
    ],
    [
      'deleted',
      async (transaction) => {
        const { id } = await vault.tokens.created({ type: 'token', data: 1 });
        await transaction.remove(id);
        return id;
      },
    ],
    [
      'deleted and created again',
      async (transaction) => {
        const { id } = await vault.tokens.created({ type: 'token', data: 1 });
        await transaction.remove(id);
        return (await transaction.created({ type: 'token', data: 2, id })).id;
      },
    ],
  ];

  /** All that a commit does, but for its end. */
  async function commitUnlessEnded(transactionId: string): Promise<void> {
    const tenant_id = vault.control.tenant.id;
    const { rows } = await client.query('SELECT created_by FROM transactions WHERE id = $1', [
      transactionId,
    ]);
    const key = { tenant_id, id: transactionId, application_id: rows[0].created_by };
    expect(await endTransaction(client, key, 'committed')).to.include({ problem: null });
    await applyStaged(client, key, () => undefined, await answerSealing(vault.control));
  }

  for (const [how, stage] of STAGED) {
    it(`are not held up by a create with an id that it has ${how}`, async () => {
      const transaction = await begin(vault.url, vault.key);
      const id = await stage(transaction);
      const other = await begin(vault.url, vault.key);
      const staging = await begin(vault.url, neighbourKey);
      await client.query('BEGIN');
      try {
        await commitUnlessEnded(transaction.id);
        const taken = { type: 'token', data: 'mine', id };
        const free = { type: 'token', data: 'theirs' };
        for (let round = 0; round < 3; round += 1) {
          // Enough of them to be in every statement that is sent meanwhile.
          const [wanting, neighbours] = await Promise.all([
            Promise.all(times(8, (n) => (n % 2 === 0 ? vault.tokens : other).create(taken))),
            Promise.all(times(16, (n) => (n % 2 === 0 ? neighbour : staging).create(free))),
          ]);
          for (const answer of neighbours) expect(answer.status, answer.text).to.equal(201);
          for (const answer of wanting) expectProblem(answer, 409);
        }
      } finally {
        await client.query('COMMIT');
      }
      expect((await vault.tokens.read(id)).status).to.equal(how === 'deleted' ? 404 : 200);
    });
  }
});
