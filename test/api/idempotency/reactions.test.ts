import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { call, type JsonObject } from '../../support/http-call.ts';
import { type HeldDestination, startHeldDestination } from '../reactors/held-destination.ts';
import { type Reactors, startReactors } from '../reactors/reactors.ts';
import { expectProblem } from '../tokens/token-client.ts';
import { expectReplay, keyed, newKey } from './keyed.ts';

const RANDOM = 'return { raw: Math.random() }';

describe('reactions with an idempotency key', () => {
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

  const react = (id: string, key: string, json: JsonObject = {}, apiKey = reactors.key) =>
    call(reactors.url, `POST /reactors/${id}/react`, { ...keyed(key, { json }), key: apiKey });
  const records = async <T = JsonObject>(columns: string): Promise<T[]> =>
    (await reactors.control.pool.query(`SELECT ${columns} FROM idempotency_records`)).rows as T[];

  it('run once and answer the same', async () => {
    const { id } = await reactors.script(RANDOM);
    const key = newKey();
    const first = await react(id, key);
    expect(first.status).to.equal(200);
    expectReplay(await react(id, key), first);
    expectReplay(await react(id, key, { args: { other: 1 } }), first);
    expect((await react(id, newKey())).text).not.to.equal(first.text);
  });

  it('make their tokens once', async () => {
    const { id } = await reactors.script("return { tokenize: ['a', 'b'] }");
    const key = newKey();
    const first = await react(id, key);
    expect(first.body.tokens).to.have.length(2);
    expectReplay(await react(id, key), first);
  });

  it('that fail are not kept', async () => {
    const { id } = await reactors.script(
      "if (Math.random() < 2) throw new Error('no ' + req.args.n)",
    );
    const key = newKey();
    for (const n of [1, 2]) {
      const answer = await react(id, key, { args: { n } });
      expect(answer.status).to.equal(500);
      expect(answer.text).to.contain(`no ${n}`);
    }
    expectProblem(await react(id, key, { args: '{{ not-there }}' }), 400);
    expect((await react(id, key)).status).to.equal(500);
  });

  /** A reaction that waits at the destination until `release`. */
  const holding = async (then = RANDOM) => {
    const { id } = await reactors.script(`await fetch('${destination.url}/held'); ${then}`);
    const { held, release } = destination.holdNext();
    const key = newKey();
    const first = react(id, key);
    await held;
    return { id, key, first, release };
  };

  it('answer 409 while one runs, and what it answered afterwards', async () => {
    const { id, key, first, release } = await holding();
    const others = await Promise.all(Array.from({ length: 20 }, () => react(id, key)));
    for (const other of others) {
      expectProblem(other, 409);
      expect(other.headers.get('retry-after')).to.equal('1');
    }
    release();
    const answer = await first;
    expect(answer.status).to.equal(200);
    expectReplay(await react(id, key), answer);
  });

  it('whose client has gone are there for its retry', async () => {
    const { id } = await reactors.script(
      `await fetch('${destination.url}/gone'); return { raw: Math.random() }`,
    );
    const { held, release } = destination.holdNext();
    const seen = destination.requests;
    const key = newKey();
    const leaving = new AbortController();
    const gone = fetch(`${reactors.url}/reactors/${id}/react`, {
      method: 'POST',
      headers: {
        ...{ 'bt-api-key': reactors.key, 'bt-idempotency-key': key },
        'content-type': 'application/json',
      },
      body: '{}',
      signal: leaving.signal,
    }).catch((error: Error) => error.name);
    await held;
    leaving.abort();
    expect(await gone).to.equal('AbortError');
    release();
    let again = await react(id, key);
    while (again.status === 409) again = await react(id, key);
    expect(again.status, again.text).to.equal(200);
    expectReplay(await react(id, key), again);
    expect(destination.requests).to.equal(seen + 1);
  });

  it('run once of 50 at once', async () => {
    const { id } = await reactors.script(
      `await fetch('${destination.url}/once'); return { raw: Math.random() }`,
    );
    const key = newKey();
    const seen = destination.requests;
    const answers = await Promise.all(Array.from({ length: 50 }, () => react(id, key)));
    const fine = answers.filter(({ status }) => status === 200);
    expect(new Set(fine.map(({ text }) => text)).size).to.equal(1);
    expect(answers.filter(({ status }) => status !== 409)).to.have.length(fine.length);
    expect(destination.requests).to.equal(seen + 1);
  });

  it('keep their lease while they run', async () => {
    const { first, release } = await holding();
    const held = async () => (await records<{ n: number }>(LEASED_FOR))[0]?.n ?? 0;
    const LEASED_FOR = `max(extract(epoch FROM leased_until - created_at))::float8 AS n`;
    expect(await held()).to.be.closeTo(20, 0.1);
    while ((await held()) < 24) await delay(100);
    release();
    expect((await first).status).to.equal(200);
  });

  const loseLease = () =>
    reactors.control.pool.query(
      `UPDATE idempotency_records SET lease_id = gen_random_uuid(), leased_until = clock_now()
       WHERE lease_id IS NOT NULL`,
    );

  it('that lost their lease make no tokens, and answer as whoever has it', async () => {
    const tokens = async () =>
      (await reactors.control.pool.query('SELECT id FROM tokens')).rowCount ?? 0;
    const { id, key, first, release } = await holding("return { tokenize: ['a', 'b'] }");
    const before = await tokens();
    await loseLease();
    const second = await react(id, key);
    expect(second.status).to.equal(200);
    release();
    expectReplay(await first, second);
    expect(await tokens()).to.equal(before + 2);
  });

  it('that lost their lease answer, but keep nothing', async () => {
    const { id, key, first, release } = await holding();
    await loseLease();
    // Nobody is at work, as far as anybody knows: it is run again.
    const second = await react(id, key);
    release();
    const late = await first;
    expect([second.status, late.status]).to.deep.equal([200, 200]);
    expect(late.text).not.to.equal(second.text);
    expectReplay(await react(id, key), second);
  });

  it('are shown again to nobody who could not use the tokens now, nor without the reactor', async () => {
    const container = '/kept/';
    const rule = { priority: 1, container, transform: 'reveal', permissions: ['token:use'] };
    const grants = { rules: [rule] as never };
    const caller = await reactors.application(grants);
    const become = (changed: JsonObject) =>
      reactors.manage(`PUT /applications/${caller.id}`, {
        json: { name: 'Caller', rules: [{ ...rule, ...changed }] },
      });
    const data = 'a value in clear';
    const token = await reactors.token({ type: 'token', data, containers: [container] });
    const { id } = await reactors.script('return { raw: req.args }');
    const key = newKey();
    const json = { args: { value: `{{ ${token} }}` } };
    const first = await react(id, key, json, caller.key);
    expect(first.body.raw).to.deep.equal({ value: data });

    for (const less of [{ transform: 'mask' }, { container: '/other/' }]) {
      await become(less);
      const denied = await react(id, key, json, caller.key);
      expectProblem(denied, 403);
      expect(denied.text).not.to.contain(data);
    }
    await become({});
    expectReplay(await react(id, key, json, caller.key), first);
    expectProblem(await react(id, key, json, 'nobody'), 401);

    const rows = await records<{ row: string }>(`encode(sealed, 'escape') AS row`);
    for (const { row } of rows) expect(row).not.to.contain(data);
    await reactors.manage(`DELETE /reactors/${id}`);
    expectProblem(await react(id, key, json, caller.key), 404);
  });

  it('accepted for later are accepted once', async () => {
    const { id } = await reactors.script(RANDOM);
    const key = newKey();
    const later = () =>
      call(reactors.url, `POST /reactors/${id}/react-async`, {
        ...keyed(key, { json: {} }),
        key: reactors.key,
      });
    const jobs = async () => {
      const { rows } = await reactors.control.pool.query('SELECT id FROM jobs');
      return rows.length;
    };
    const before = await jobs();
    const first = await later();
    expect(first.status).to.equal(202);
    expectReplay(await later(), first);
    expect(await jobs()).to.equal(before + 1);
  });

  it('of scripts have none', async () => {
    const application = await reactors.application({ permissions: ['token:create'] });
    const script = "return { raw: (await req.bt.tokens.create({ type: 'token', data: 'x' })).id }";
    const { id } = await reactors.script(script, { application: { id: application.id } });
    const key = newKey();
    const first = await react(id, key);
    expect(first.status, first.text).to.equal(200);
    expectReplay(await react(id, key), first);
    expect((await react(id, newKey())).text).not.to.equal(first.text);
  });
});
