/**
 * What a run came to is kept for a replay, a result or a callback: with a cvc that it has opened, never
 * for longer than that is kept itself. That it ran is known for the whole day.
 */
import { expect } from 'chai';
import { readEnvironment } from '../../../config/environment.ts';
import { requiredSettings } from '../../../config/required-settings.ts';
import { createDataPlane } from '../../../data-plane/create-data-plane.ts';
import { sweepsOf } from '../../../data-plane/run-sweeps.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createPool, type Pool } from '../../../shared/postgres/pool.ts';
import type { Plane } from '../../../shared/process/serve-plane.ts';
import { randomCardNumber } from '../../support/card-numbers.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { expectReplay, keyed, newKey } from '../idempotency/keyed.ts';
import { expectProblem } from '../tokens/token-client.ts';
import { HOUR_S } from '../tokens/vault.ts';
import { startCallbackReceiver } from './callback-receiver.ts';
import { startJobRunner } from './job-runner.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

const CVC = '7391';
const LATER = { SALLYPORT_TEST_CLOCK_OFFSET: String(HOUR_S + 60) };

describe('what comes of a run that has opened a cvc', () => {
  let reactors: Reactors;
  let later: Plane;
  let laterUrl: string;
  let latePool: Pool;
  let card: string;
  let echo: Reactor;
  before(async () => {
    reactors = await startReactors();
    const { connectionString, kek } = reactors.control.database;
    const environment = readEnvironment({
      ...{ NODE_ENV: 'test', DATABASE_URL: connectionString, SALLYPORT_KEK: kek, PORT: '0' },
      ...{ CONTROL_PLANE_PORT: String(reactors.control.port), SANDBOX_HOSTS: '1', ...LATER },
    });
    const log = createLogger('test', 'silent');
    later = createDataPlane({ ...environment, ...requiredSettings(environment) }, log);
    laterUrl = `http://localhost:${await later.start()}`;
    const clockOffsetSeconds = HOUR_S + 60;
    const late = { connectionString, max: 2, applicationName: 'test', clockOffsetSeconds, log };
    latePool = createPool(late);
    card = await reactors.token({ type: 'card', data: { number: randomCardNumber(), cvc: CVC } });
    echo = await reactors.script('return { raw: req.args, tokenize: { made: "x" } }');
  });
  after(async () => {
    await latePool?.end();
    await later?.stop();
    await reactors?.stop();
  });

  const rowsOf = async (table: string): Promise<{ due: boolean; bytes: number }[]> => {
    const columns = 'due_at IS NOT NULL AS due, octet_length(sealed) AS bytes';
    return (await reactors.control.pool.query(`SELECT ${columns} FROM ${table}`)).rows;
  };
  const countTokens = async (): Promise<number> =>
    (await reactors.control.pool.query('SELECT id FROM tokens')).rows.length;
  const sweep = async (subject: string): Promise<number> => {
    const found = sweepsOf(latePool).find((one) => one.subject === subject);
    return (await found?.run(100)) ?? -1;
  };
  /** Moves the moment it is due, as only who writes in the database can. */
  const postpone = (table: string, days: number) =>
    reactors.control.pool.query(`UPDATE ${table} SET due_at = due_at + interval '${days} days'`);

  describe('under an idempotency key', () => {
    beforeEach(() => reactors.control.pool.query('DELETE FROM idempotency_records'));

    const react = (url: string, key: string, { id }: Reactor, json: JsonObject = {}) =>
      call(url, `POST /reactors/${id}/react`, { ...keyed(key, { json }), key: reactors.key });

    it('is replayed while the cvc is kept; then it is 409, and the code does not run again', async () => {
      const key = newKey();
      const json = { args: { card: `{{ ${card} }}` } };
      const first = await react(reactors.url, key, echo, json);
      expect(first.text).to.contain(CVC);
      expectReplay(await react(reactors.url, key, echo, json), first);
      const made = await countTokens();
      for (const swept of [0, 1]) {
        if (swept === 1) expect(await sweep('due_idempotency_records')).to.equal(1);
        const due = await react(laterUrl, key, echo, json);
        expectProblem(due, 409);
        expect(due.text).not.to.contain(CVC);
      }
      expect(await rowsOf('idempotency_records')).to.deep.equal([{ due: false, bytes: 1 }]);
      // Erased for everybody.
      expectProblem(await react(reactors.url, key, echo, json), 409);
      expect(await countTokens()).to.equal(made);
    });

    it('does not open when its row says that it may be kept for longer', async () => {
      const key = newKey();
      const json = { args: `{{ ${card} }}` };
      expect((await react(reactors.url, key, echo, json)).text).to.contain(CVC);
      await postpone('idempotency_records', 1);
      const forged = await react(laterUrl, key, echo, json);
      expect([forged.status, forged.text.includes(CVC)]).to.deep.equal([500, false]);
    });

    it('is kept for a day when the cvc was not opened: its card was used as a mask', async () => {
      const rule = { priority: 1, container: '/', transform: 'mask' } as const;
      const masked = await reactors.application({
        rules: [{ ...rule, permissions: ['token:use', 'token:create'] }],
      });
      const key = newKey();
      const send = (url: string) =>
        call(url, `POST /reactors/${echo.id}/react`, {
          ...keyed(key, { json: { args: `{{ ${card} }}` } }),
          key: masked.key,
        });
      const first = await send(reactors.url);
      expect(first.status, first.text).to.equal(200);
      expectReplay(await send(laterUrl), first);
      expect((await rowsOf('idempotency_records'))[0]?.due).to.equal(false);
    });

    it('counts what its script has read, and what reactors that it called have used', async () => {
      const rule = { priority: 1, container: '/', transform: 'reveal' } as const;
      const { id } = await reactors.application({
        rules: [{ ...rule, permissions: ['token:read', 'token:use'] }],
      });
      const application = { id };
      const inner = await reactors.script('return { raw: req.args }');
      const bodies = [
        `return { raw: (await req.bt.tokens.retrieve('${card}')).data }`,
        `return { raw: await req.bt.detokenize({ a: '{{ ${card} }}' }) }`,
        `return { raw: await req.bt.reactors.react('${inner.id}', { args: '{{ ${card} }}' }) }`,
      ];
      for (const body of bodies) {
        const key = newKey();
        const reading = await reactors.script(body, { application });
        const first = await react(reactors.url, key, reading);
        expect(first.text, body).to.contain(CVC);
        expectReplay(await react(reactors.url, key, reading), first);
        expectProblem(await react(laterUrl, key, reading), 409);
      }
    });
  });

  describe('asynchronously', () => {
    beforeEach(() => reactors.control.pool.query('DELETE FROM reactor_results'));

    const result = (url: string, id: string) =>
      call(url, `GET /reactors/${echo.id}/results/${id}`, { key: reactors.key });
    const ended = async (args: unknown): Promise<string> => {
      const line = `POST /reactors/${echo.id}/react-async`;
      const { body } = await call(reactors.url, line, { key: reactors.key, json: { args } });
      const id = String(body.asyncReactorRequestId);
      while ((await result(reactors.url, id)).status === 404) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return id;
    };

    it('is a result for as long as the cvc is kept, and then an error', async () => {
      const jobs = await startJobRunner(reactors);
      const [due, lasting] = [await ended(`{{ ${card} }}`), await ended('no card')].map(String);
      await jobs.stop();
      expect((await result(reactors.url, due ?? '')).text).to.contain(CVC);
      for (const swept of [0, 1]) {
        if (swept === 1) expect(await sweep('due_reactor_results')).to.equal(1);
        const over = await result(laterUrl, due ?? '');
        expectProblem(over, 409);
        expect(over.text).not.to.contain(CVC);
        expect((await result(laterUrl, lasting ?? '')).body.raw).to.equal('no card');
      }
      const rows = await rowsOf('reactor_results');
      expect(rows.filter(({ bytes }) => bytes === 1)).to.deep.equal([{ due: false, bytes: 1 }]);
      // It goes with its day, as all others.
      const age = "UPDATE reactor_results SET created_at = created_at - interval '25 hours'";
      await reactors.control.pool.query(age);
      expect(await sweep('reactor_results')).to.equal(2);
    });

    it('does not open when its row says that it may be kept for longer', async () => {
      const jobs = await startJobRunner(reactors);
      const id = await ended(`{{ ${card} }}`);
      await jobs.stop();
      await postpone('reactor_results', 1);
      const forged = await result(laterUrl, id);
      expect([forged.status, forged.text.includes(CVC)]).to.deep.equal([500, false]);
    });

    it('is not what a callback is sent that is delivered later', async () => {
      const receiver = await startCallbackReceiver();
      receiver.answer = (res, index) => res.writeHead(index === 0 ? 500 : 204).end();
      const now = await startJobRunner(reactors);
      const json = { args: `{{ ${card} }}`, callback_url: receiver.url };
      expect((await reactors.react(echo, json)).status).to.equal(202);
      expect((await receiver.callback(0)).text).to.contain(CVC);
      await now.stop();
      const then = await startJobRunner(reactors, { settings: LATER });
      const delivered = await receiver.callback(1);
      await then.stop();
      await receiver.close();
      expect(delivered.body).to.include({ title: 'Conflict', status: 409 });
      expect(delivered.text).not.to.contain(CVC);
    });
  });
});
