/** Tokens that reactions with an idempotency key make: one transaction with the answer that names them. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { call, type JsonObject } from '../../support/http-call.ts';
import { type HeldDestination, startHeldDestination } from '../reactors/held-destination.ts';
import { type Reactors, startReactors } from '../reactors/reactors.ts';
import { expectProblem } from '../tokens/token-client.ts';
import { expectReplay, keyed, newKey } from './keyed.ts';

describe('tokens of a reaction with an idempotency key', () => {
  let reactors: Reactors;
  let destination: HeldDestination;
  before(async () => {
    reactors = await startReactors();
    destination = await startHeldDestination();
  });
  after(async () => {
    await destination?.stop();
    await reactors?.stop();
  });

  const react = (id: string, key: string, apiKey = reactors.key) =>
    call(reactors.url, `POST /reactors/${id}/react`, { ...keyed(key, { json: {} }), key: apiKey });
  const rowsOf = async (text: string, values: unknown[] = []): Promise<JsonObject[]> =>
    (await reactors.control.pool.query(text, values)).rows as JsonObject[];

  it('commit with the kept answer and their audit rows', async () => {
    const { id } = await reactors.script("return { tokenize: ['a', 'b'] }");
    const { body, text } = await react(id, newKey());
    expect(body.tokens, text).to.have.length(2);
    const transactions = await rowsOf(
      `SELECT xmin::text, count(*)::int4 FROM (
         SELECT xmin FROM tokens WHERE id = ANY ($1)
         UNION ALL SELECT xmin FROM audit_log WHERE entity_id = ANY ($1)
         UNION ALL SELECT xmin FROM idempotency_records
       ) written GROUP BY 1`,
      [body.tokens],
    );
    expect(transactions.map(({ count }) => count)).to.deep.equal([5]);
  });

  it('are not there when their answer cannot be kept, and made once by the retry', async () => {
    const tokens = async () => (await rowsOf('SELECT id FROM tokens')).length;
    const { id } = await reactors.script("return { tokenize: ['a', 'b'] }");
    const key = newKey();
    const before = await tokens();
    const nothingKept = 'CONSTRAINT nothing_kept';
    await rowsOf(
      `ALTER TABLE idempotency_records ADD ${nothingKept} CHECK (sealed IS NULL) NOT VALID`,
    );
    expect((await react(id, key)).status).to.equal(500);
    expect(await tokens()).to.equal(before);
    await rowsOf(`ALTER TABLE idempotency_records DROP ${nothingKept}`);
    const first = await react(id, key);
    expect(first.status, first.text).to.equal(200);
    expectReplay(await react(id, key), first);
    expect(await tokens()).to.equal(before + 2);
  });

  /** Nobody can keep anything until `end`. */
  async function shutRecords() {
    const { adminConnectionString } = reactors.control.database;
    const client = new pg.Client({ connectionString: adminConnectionString });
    await client.connect();
    await client.query('BEGIN');
    await client.query('LOCK TABLE idempotency_records IN EXCLUSIVE MODE');
    const waiting = async (): Promise<string[]> => {
      const { rows } = await client.query<{ name: string }>(
        `SELECT virtualtransaction AS name FROM pg_locks
         WHERE NOT granted AND relation = 'idempotency_records'::regclass`,
      );
      return rows.map(({ name }) => name);
    };
    return { waiting, end: () => client.query('COMMIT').then(() => client.end()) };
  }

  for (const what of ["tokenize: ['a', 'b']", 'raw: Math.random()']) {
    it(`do not make the code run again when the database is away for a moment: ${what}`, async () => {
      const script = `await fetch('${destination.url}/ran'); return { ${what} }`;
      const { id } = await reactors.script(script);
      const { held, release } = destination.holdNext();
      const seen = destination.requests;
      const key = newKey();
      const first = react(id, key);
      await held;
      const shut = await shutRecords();
      release();
      let refused: string[] = [];
      while (refused.length === 0) refused = await shut.waiting();
      // Whoever waited has been told that it cannot be.
      while ((await shut.waiting()).some((name) => refused.includes(name))) await delay(20);
      await shut.end();
      const answer = await first;
      expect(answer.status, answer.text).to.equal(200);
      expectReplay(await react(id, key), answer);
      expect(destination.requests).to.equal(seen + 1);
    });
  }

  it('are shown again to nobody who could not be shown them now', async () => {
    const container = '/made/';
    const rule = { priority: 1, container, transform: 'mask' };
    const permissions = ['token:create', 'token:read', 'token:use'];
    const caller = await reactors.application({ rules: [{ ...rule, permissions }] as never });
    const become = (changed: JsonObject) =>
      reactors.manage(`PUT /applications/${caller.id}`, {
        json: { name: 'Caller', rules: [{ ...rule, permissions, ...changed }] },
      });
    const token = {
      ...{ type: 'token', data: 'shown', mask: '{{ data | reveal_last: 2 }}' },
      ...{ containers: [container], deduplicate_token: true },
      fingerprint_expression: '{{ data }}',
    };
    const { id } = await reactors.script(`return { tokenize: ${JSON.stringify(token)} }`);
    for (let n = 0; n < 2; n += 1) {
      // The second time it is a duplicate, and shown by the right to read.
      await become({});
      const key = newKey();
      const first = await react(id, key, caller.key);
      expect(first.text).to.contain('wn"');
      const lost = n === 0 ? 'token:create' : 'token:read';
      await become({ permissions: permissions.filter((name) => name !== lost) });
      expectProblem(await react(id, key, caller.key), 403);
      await become({ transform: 'redact' });
      expectProblem(await react(id, key, caller.key), 403);
      await become({});
      expectReplay(await react(id, key, caller.key), first);
    }
  });
});
