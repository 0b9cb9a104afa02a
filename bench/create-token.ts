/** `POST /tokens` of cards with default mask and fingerprint, against one plain insert per request. */
import { createCards, newCard } from './cards.ts';
import { startProcess } from './child-process.ts';
import type { Claim } from './claim.ts';
import type { Lab } from './lab.ts';
import type { InsertRowSettings } from './peers/insert-row.ts';
import { interleave, perCpuSecond, ratio, type Subject, summary } from './rounds.ts';
import { seedCards } from './seed-cards.ts';
import { startSubject } from './start-subject.ts';
import { createVault, DATA_PLANE_CONNECTIONS, startDataPlane, type Vault } from './vault.ts';

const TOKENS = 10_000;
const PLAN = { rounds: 7, limit: { seconds: 3 }, warmUp: { seconds: 5 } };

export const createToken: Claim = {
  name: 'create-token',
  async measure(lab) {
    const vault = await createVault(lab, 'create_token');
    await seedCards(vault, TOKENS);
    const { port, pid } = await startDataPlane(lab, vault);
    const workload = createCards(vault);
    const product = await startSubject(lab, { port, pid }, workload);
    const peer = await startInsertRow(lab, vault, await createOne(vault, port));
    const plan = { ...PLAN, postgresPid: lab.postgresPid() };
    const rounds = await interleave({ product, peer }, plan);
    return [
      {
        title: 'POST /tokens (card) per CPU-second : one prepared single-row INSERT per request',
        unit: 'x',
        ...ratio(rounds.product, rounds.peer, perCpuSecond),
        target: { atLeast: 1 },
        details: { ...summary('product', rounds.product), ...summary('peer', rounds.peer) },
      },
    ];
  },
};

/** The answer to a create, as the product gives it. */
async function createOne({ key }: Vault, port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/tokens`, {
    method: 'POST',
    headers: { 'bt-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(newCard()),
  });
  if (response.status !== 201) throw new Error(`a create answered ${response.status}`);
  return response.text();
}

/** Its rows and its answers are as large as those of the token in `answer`. */
async function startInsertRow(lab: Lab, vault: Vault, answer: string): Promise<Subject> {
  const { databaseUrl, tenantId, applicationId } = vault;
  const { id } = JSON.parse(answer) as { id: string };
  const { rows } = await vault.pool.query<InsertRowSettings['row']>(
    `SELECT container, fingerprint, fingerprint_expression, length(sealed) AS sealed_bytes
     FROM tokens WHERE tenant_id = $1 AND id = $2`,
    [tenantId, id],
  );
  const [row] = rows;
  if (row === undefined) throw new Error('a created token is not there');
  const databasePoolMax = DATA_PLANE_CONNECTIONS;
  const settings: InsertRowSettings = {
    ...{ databaseUrl, databasePoolMax, tenantId, applicationId },
    ...{ row, answer },
  };
  const peer = lab.keep(await startProcess<{ port: number }>('peers/insert-row.ts', settings));
  const workload = { ...createCards(vault), contains: id };
  return startSubject(lab, { port: peer.ready.port, pid: peer.pid }, workload);
}
