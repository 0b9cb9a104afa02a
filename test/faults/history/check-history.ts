/** Holds what is in the vault at the end against what the clients of a history were told. */
import { setTimeout as delay } from 'node:timers/promises';
import { call, type JsonObject } from '../../support/http-call.ts';
import { inParallel } from '../../support/in-parallel.ts';
import { type AcceptedReaction, dataOf, type KnownToken, type Ledger } from './ledger.ts';
import type { HistoryTenant, World } from './world.ts';

/** What was begun when its process died ends with its lease: 15 s, and as long for what waits behind it. */
const RESULTS_MS = 60_000;

/** Adds to the ledger's violations. All faults are over and everything is up. */
export async function checkHistory(world: World, ledger: Ledger): Promise<void> {
  const deadline = performance.now() + RESULTS_MS;
  await inParallel(ledger.accepted, (one) => checkResult(world, one, ledger, deadline));
  await inParallel([...ledger.tokens.values()], (token) => checkToken(world, token, ledger));
  for (const tenant of world.tenants) await checkStrangers(world, tenant, ledger);
  await checkAudit(world, ledger);
  await tellOfLost(world, ledger);
}

/** What was accepted has one result, and made its token when that says so, and only then. */
async function checkResult(
  { baseUrl }: World,
  { op, tenant, requestId }: AcceptedReaction,
  ledger: Ledger,
  deadline: number,
): Promise<void> {
  const { key, reactorId } = tenant;
  const ask = () => call(baseUrl, `GET /reactors/${reactorId}/results/${requestId}`, { key });
  let result = await ask();
  while (result.status === 404 && performance.now() < deadline) {
    await delay(100);
    result = await ask();
  }
  ledger.count('GET /results', result.status);
  const again = await ask();
  if (again.text !== result.text && result.status !== 404) {
    ledger.violate(`${op}: result ${again.text}, was ${result.text}`);
  }
  if (result.status === 200) {
    ledger.acknowledge(tenant, op, [String((result.body.tokens as JsonObject).id)]);
  } else if (result.status === 500) ledger.undone.add(op);
  else ledger.violate(`${op}: accepted, and its result is ${result.status} ${result.text}`);
}

/** No acknowledged write is lost, and nothing that was deleted is back. */
async function checkToken({ baseUrl }: World, token: KnownToken, ledger: Ledger): Promise<void> {
  const { status, body } = await call(baseUrl, `GET /tokens/${token.id}`, {
    key: token.tenant.key,
  });
  if (status === 200) token.reads += 1;
  if (token.deletedAt !== undefined) {
    if (status !== 404) ledger.violate(`${token.op}: deleted, and ${status} at the end`);
    if (token.deletes + token.deletesUntold === 0) {
      ledger.violate(`${token.op}: ${token.id} was gone before anybody's delete had an effect`);
      ledger.lost.add(token.id);
    }
    return;
  }
  if (status === 404 && token.deletesUntold > 0) return;
  if (status !== 200 || body.data !== dataOf(token.tenant, token.op)) {
    ledger.violate(`${token.op}: ${status} at the end`);
    return;
  }
  const metadata = (body.metadata ?? {}) as JsonObject;
  for (const name of token.patched) {
    if (metadata[name] !== 'yes')
      ledger.violate(`${token.op}: ${name} was acknowledged and is lost`);
  }
}

/**
 * Tokens that nobody was told of: each must come of an operation whose end is unknown, and of each such
 * operation only what one effect makes. One of an acknowledged operation is its second effect.
 */
async function checkStrangers(world: World, tenant: HistoryTenant, ledger: Ledger): Promise<void> {
  const { rows } = await world.admin.query<{ id: string }>(
    'SELECT id FROM tokens WHERE tenant_id = $1',
    [tenant.id],
  );
  const seen = new Map<string, number>();
  for (const { id } of rows) {
    if (ledger.tokens.has(id)) continue;
    const { body } = await call(world.baseUrl, `GET /tokens/${id}`, { key: tenant.key });
    const [mark, op = ''] = String(body.data).split(' ');
    if (mark !== tenant.mark) ledger.violate(`${id}: data of nobody`);
    seen.set(op, (seen.get(op) ?? 0) + 1);
  }
  for (const [op, count] of seen) {
    const whole = op.startsWith('transaction') ? 2 : 1;
    if (ledger.undone.has(op)) ledger.violate(`${op}: ${count} tokens of what was undone`);
    else if (!ledger.unknown.has(op))
      ledger.violate(`${op}: ${count} tokens more than acknowledged`);
    else if (count !== whole) ledger.violate(`${op}: ${count} tokens of one effect`);
  }
}

/**
 * Every access has its row, and a write with a key no second one: the trail shows the second effect of a
 * patch, which the token does not.
 */
async function checkAudit({ admin }: World, ledger: Ledger): Promise<void> {
  const { rows } = await admin.query<{ name: string; count: number }>(
    `SELECT operation || ' ' || entity_id AS name, count(*)::int4 AS count FROM audit_log
     WHERE entity_type = 'token' AND NOT denied GROUP BY 1`,
  );
  const written = new Map(rows.map(({ name, count }) => [name, count]));
  for (const token of ledger.tokens.values()) {
    const { id, op, patched, patches, deletes, reads } = token;
    const expectRows = (operation: string, least: number, most: number): void => {
      const count = written.get(`${operation} ${id}`) ?? 0;
      if (count >= least && count <= most) return;
      ledger.violate(`${op}: ${count} audit rows of ${operation}, not ${least} to ${most}`);
    };
    expectRows('create', 1, 1);
    expectRows('update', patched.size, patches);
    expectRows('delete', deletes, Math.min(1, token.deletesSent));
    expectRows('read', reads, Number.POSITIVE_INFINITY);
  }
}

/** What the trail has of tokens that were missed, to see where they went. */
async function tellOfLost({ admin }: World, ledger: Ledger): Promise<void> {
  if (ledger.lost.size === 0) return;
  const { rows } = await admin.query(
    `SELECT entity_id, operation, created_at, trace_id FROM audit_log
     WHERE entity_id = ANY ($1) ORDER BY created_at`,
    [[...ledger.lost]],
  );
  for (const row of rows) ledger.violate(`the trail of what was missed: ${JSON.stringify(row)}`);
}
