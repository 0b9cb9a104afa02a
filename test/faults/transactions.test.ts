/** Transactions of the API when the database's answer is lost, or the process that knew of them. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { expectProblem } from '../api/tokens/token-client.ts';
import { startVault, type Vault } from '../api/tokens/vault.ts';
import { begin, transactionClient } from '../api/transactions/transaction-client.ts';
import { call } from '../support/http-call.ts';
import { type PlaneBehindDropper, startPlaneBehindDropper } from './plane-behind-dropper.ts';

describe('transactions when something breaks', () => {
  let vault: Vault;
  let behind: PlaneBehindDropper;

  before(async () => {
    vault = await startVault();
    behind = await startPlaneBehindDropper(vault, ['COMMIT', 'stage-creates']);
  });
  after(async () => {
    await behind?.stop();
    await vault?.stop();
  });

  const end = (id: string, how: string, idempotencyKey?: string) =>
    call(behind.url, `POST /transactions/${id}/${how}`, {
      key: vault.key,
      headers: idempotencyKey === undefined ? {} : { 'bt-idempotency-key': idempotencyKey },
    });
  const stagedIn = async (id: string): Promise<number> => {
    const text = 'SELECT 1 FROM staged_tokens WHERE transaction_id = $1';
    return (await vault.control.pool.query(text, [id])).rowCount ?? -1;
  };

  for (const how of ['commit', 'rollback']) {
    it(`the lost answer of a ${how}: the retry by its key tells, without one it is 409`, async () => {
      for (const key of [randomUUID(), undefined]) {
        const transaction = await begin(behind.url, vault.key);
        const { id } = await transaction.created({ type: 'token', data: 'x' });
        behind.dropper.drop(1);
        const lost = await end(transaction.id, how, key);
        expect([lost.status, lost.headers.get('retry-after')]).to.deep.equal([503, '1']);
        const again = await end(transaction.id, how, key);
        expect(again.status).to.equal(key === undefined ? 409 : 200);
        const { status } = await vault.tokens.read(id);
        expect(status).to.equal(how === 'commit' ? 200 : 404);
        expect(await stagedIn(transaction.id)).to.equal(0);
      }
    });
  }
  it('the lost answer of a create: by its key it is staged once', async () => {
    const transaction = await begin(behind.url, vault.key);
    const headers = { 'bt-idempotency-key': randomUUID() };
    const create = () =>
      transaction.send('POST /tokens', { json: { type: 'token', data: 'x' }, headers });
    behind.dropper.drop(1);
    expect((await create()).status).to.equal(503);
    const { status, body } = await create();
    expect(status).to.equal(201);
    expect(await stagedIn(transaction.id)).to.equal(1);
    expect((await transaction.commit()).status).to.equal(200);
    expect((await vault.tokens.read(body.id)).status).to.equal(200);
  });
  it('a process that is gone: another one goes on, by the database alone', async () => {
    const transaction = await begin(behind.url, vault.key);
    const { id } = await transaction.created({ type: 'token', data: 'x' });
    await behind.stopPlane();
    const elsewhere = transactionClient(vault.url, vault.key, transaction.id);
    expectProblem(await vault.tokens.read(id), 404);
    expect((await elsewhere.patch(id, { data: 'y' })).status).to.equal(200);
    expect((await elsewhere.commit()).status).to.equal(200);
    expect((await vault.tokens.read(id)).body.data).to.equal('y');
  });
});
