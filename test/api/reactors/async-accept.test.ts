/** Which asynchronous calls are accepted, and who may ask for what they came to (attacks C-10). */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { openJob } from '../../../data-plane/reactors/job-content.ts';
import { acceptReactions } from '../../../data-plane/reactors/reaction-queue.ts';
import { createDataKeys } from '../../../shared/crypto/data-keys.ts';
import { SealBrokenError } from '../../../shared/crypto/envelope.ts';
import type { JobKind } from '../../../shared/jobs/job-store.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { type TrailRow, trailOf } from '../audit/trail.ts';
import { expectProblem } from '../tokens/token-client.ts';
import { type JobRunner, startJobRunner } from './job-runner.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

const CALLBACK = 'https://shop.example/hook';
const NOBODY = '00000000-0000-4000-8000-000000000000';

describe('accepting asynchronous calls', () => {
  let reactors: Reactors;
  let echo: Reactor;
  let declared: Reactor;
  before(async () => {
    reactors = await startReactors();
    echo = await reactors.script('return { raw: req.args }');
    declared = await reactors.reactor({
      formula: {
        code: 'module.exports = (req) => ({ raw: req.args })',
        request_parameters: [{ name: 'a', type: 'number', optional: false }],
      },
    });
  });
  after(async () => {
    await reactors?.stop();
  });

  const countJobs = async (): Promise<number> => {
    const { rows } = await reactors.control.pool.query('SELECT count(*)::int AS n FROM jobs');
    return rows[0].n;
  };
  const asyncly = (reactor: Pick<Reactor, 'id'>, json: unknown, key = reactors.key, headers = {}) =>
    call(reactors.url, `POST /reactors/${reactor.id}/react-async`, { key, json, headers });
  const result = (reactor: Pick<Reactor, 'id'>, id: unknown, key = reactors.key) =>
    call(reactors.url, `GET /reactors/${reactor.id}/results/${id}`, { key });

  it('refuses what the run would refuse, as far as it can be known, and stores nothing', async () => {
    const token = await reactors.token({ type: 'token', data: 'a', containers: ['/closed/'] });
    const { key: using } = await reactors.application({
      rules: [
        { priority: 1, container: '/open/', transform: 'reveal', permissions: ['token:use'] },
      ],
    });
    const { key: reading } = await reactors.application({ permissions: ['token:read'] });
    const before = await countJobs();
    const many = Array.from({ length: 101 }, (_, index) => `{{ token_${index} }}`);
    const cases: [Pick<Reactor, 'id'>, JsonObject, number, string?][] = [
      [echo, { args: '{{ nothing_like_it }}' }, 400],
      [echo, { args: '{{ a' }, 400],
      [echo, { args: many }, 400],
      [echo, { args: `{{ ${token} }}` }, 403, using],
      [echo, {}, 403, reading],
      [echo, {}, 401, 'key_wrong'],
      [declared, {}, 400],
      [declared, { args: {} }, 400],
      [declared, { args: { a: 'x' } }, 400],
      [{ id: NOBODY }, {}, 404],
    ];
    for (const [reactor, json, status, key = reactors.key] of cases) {
      expectProblem(await asyncly(reactor, json, key), status);
      expectProblem(
        await reactors.react(reactor, { ...json, callback_url: CALLBACK }, key),
        status,
      );
    }
    for (const json of [
      { callback_url: 'http://shop.example/' },
      { callbackUrl: 'https://169.254.169.254/' },
      { callback_url: CALLBACK, timeout_ms: 9_999 },
      { callbackUrl: CALLBACK, timeoutMs: '10000' },
    ]) {
      expectProblem(await reactors.react(echo, json), 400);
    }
    expectProblem(await asyncly(echo, { timeout_ms: 210_001 }), 400);
    expect(await countJobs()).to.equal(before);
    expect((await asyncly(declared, { args: `{{ ${token} }}` })).status).to.equal(202);
    expect((await asyncly(declared, { args: { a: `{{ ${token} }}` } })).status).to.equal(202);
    expect(await countJobs()).to.equal(before + 2);
    // Only for those that are run later.
    expect((await reactors.react(echo, { args: 1, timeout_ms: -1 })).status).to.equal(200);
    expect((await reactors.react(echo, { callback_url: null })).status).to.equal(200);
  });

  it('keeps no value of a token, nor an argument, in clear', async () => {
    const token = await reactors.token({ type: 'token', data: 'a_secret_value' });
    const args = { clear: 'an_argument_in_clear', token: `{{ ${token} }}` };
    await reactors.react(echo, { args, callback_url: 'https://shop.example/a_callback_url' });
    const { rows } = await reactors.control.pool.query(
      `SELECT encode(sealed, 'escape') AS sealed, jobs::text AS text FROM jobs`,
    );
    expect(rows.length).to.be.greaterThan(0);
    for (const text of rows.flatMap((row) => [row.sealed, row.text])) {
      for (const secret of ['a_secret', 'an_argument', 'a_callback', token, 'module.exports']) {
        expect(text).not.to.contain(secret);
      }
    }
  });

  it('binds what is stored to its tenant, its id and its kind', async () => {
    const { pool, installation, tenant, addTenant } = reactors.control;
    const { body } = await asyncly(echo, { args: 'bound' });
    const id = String(body.asyncReactorRequestId);
    const { rows } = await pool.query('SELECT sealed FROM jobs WHERE id = $1', [id]);
    const sealed: Buffer = rows[0].sealed;
    const dataKeys = createDataKeys(pool, installation);
    const open = (tenant_id: string, name: string, kind: JobKind) =>
      openJob(dataKeys, { tenant_id, id: name, kind }, sealed).then(
        (content) => ('args' in content ? content.args : undefined),
        (error: unknown) => (error instanceof SealBrokenError ? 'broken' : error),
      );
    expect(await open(tenant.id, id, 'react')).to.equal('bound');
    expect(await open(tenant.id, id, 'callback')).to.equal('broken');
    expect(await open(tenant.id, NOBODY, 'react')).to.equal('broken');
    expect(await open((await addTenant('Initech')).id, id, 'react')).to.equal('broken');
  });

  it('accepts one call per idempotency key, and answers it the same again', async () => {
    const before = await countJobs();
    const key = { 'bt-idempotency-key': 'once' };
    const first = await asyncly(echo, { args: 1 }, reactors.key, key);
    const again = await asyncly(echo, { args: 2 }, reactors.key, key);
    expect([again.status, again.text]).to.deep.equal([202, first.text]);
    expect(await countJobs()).to.equal(before + 1);
    const parallel = await Promise.all(
      Array.from({ length: 20 }, () =>
        asyncly(echo, { args: 1 }, reactors.key, { 'bt-idempotency-key': 'many' }),
      ),
    );
    const accepted = parallel.filter(({ status }) => status === 202);
    expect(new Set(accepted.map(({ text }) => text)).size).to.equal(1);
    for (const { status } of parallel) expect([202, 409]).to.include(status);
    expect(await countJobs()).to.equal(before + 2);
  });

  it('stores nothing for a caller whose configuration is another by now', async () => {
    const { control } = reactors;
    const before = await countJobs();
    const stale = {
      ...{ tenant_id: control.tenant.id, config_version: NOBODY },
      ...{ id: randomUUID(), sealed: Buffer.from('x') },
    };
    const { rows } = await control.pool.query('SELECT config_version FROM tenants WHERE id = $1', [
      control.tenant.id,
    ]);
    const [current] = rows;
    const gone = { ...stale, tenant_id: NOBODY, id: randomUUID() };
    const good = { ...stale, ...current, id: randomUUID() };
    const readings = await acceptReactions(control.pool, [stale, gone, good]);
    expect(readings.map(({ config_version }) => config_version)).to.deep.equal([
      ...[current.config_version, null, current.config_version],
    ]);
    expect(await countJobs()).to.equal(before + 1);
    await control.pool.query('DELETE FROM jobs WHERE id = $1', [good.id]);
  });

  it('says of a result that is not there that it may come, and how long it is kept', async () => {
    const accepted = await asyncly(echo, {});
    const early = await result(echo, accepted.body.asyncReactorRequestId);
    expectProblem(early, 404);
    expect(early.body.detail).to.match(/^No result yet.* 24 hours/);
  });

  it('does not let scripts start runs that outlive them', async () => {
    const { id } = await reactors.application({ permissions: ['token:use'] });
    const body = `
      try { await req.bt.reactors.react('${echo.id}', { args: 1, callbackUrl: '${CALLBACK}' }) }
      catch (error) { return { raw: error.status } }`;
    const before = await countJobs();
    const calling = await reactors.script(body, { application: { id } });
    expect((await reactors.react(calling)).body.raw).to.equal(400);
    expect(await countJobs()).to.equal(before);
  });

  describe('asking for results', () => {
    let jobs: JobRunner;
    before(async () => {
      jobs = await startJobRunner(reactors);
    });
    after(async () => {
      await jobs?.stop();
    });

    const ended = async (reactor: Reactor, id: unknown, key = reactors.key) => {
      for (;;) {
        const answer = await result(reactor, id, key);
        if (answer.status !== 404) return answer;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    /** Reads and refusals are told of somewhat later. */
    const firstOfTrail = async (trace_id: string | null): Promise<TrailRow> => {
      const { pool, tenant } = reactors.control;
      for (;;) {
        const [row] = await trailOf(pool, tenant.id, trace_id);
        if (row !== undefined) return row;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const idOf = async (reactor: Reactor, json: JsonObject, key = reactors.key) =>
      (await asyncly(reactor, json, key)).body.asyncReactorRequestId;

    it('is for the application that asked, at the reactor it asked for', async () => {
      const id = await idOf(echo, { args: 'mine' });
      expect((await ended(echo, id)).body).to.deep.equal({ raw: 'mine' });
      expect(
        (await result({ id: echo.id.toUpperCase() }, String(id).toUpperCase())).status,
      ).to.equal(200);
      const { key: other } = await reactors.application({ permissions: ['token:use'] });
      const theirs = await reactors.control.addTenant('Globex');
      const foreign = await reactors.application({ permissions: ['token:use'] }, theirs);
      for (const key of [other, foreign.key]) expectProblem(await result(echo, id, key), 404);
      expectProblem(await result(declared, id), 404);
      for (const name of [NOBODY, 'x', `${id}0`, "'"]) {
        expectProblem(await result(echo, encodeURIComponent(name)), 404);
      }
      expectProblem(await result(echo, id, 'key_wrong'), 401);
    });

    it('ends after a day, by the database’s clock, and with the reactor', async () => {
      const reactor = await reactors.script('return { raw: 1 }');
      const id = await idOf(reactor, {});
      await ended(reactor, id);
      const age = (interval: string) =>
        reactors.control.pool.query(
          `UPDATE reactor_results SET created_at = clock_now() - interval '${interval}' WHERE id = $1`,
          [id],
        );
      await age('23 hours 59 minutes 58 seconds');
      expect((await result(reactor, id)).status).to.equal(200);
      await age('24 hours');
      expectProblem(await result(reactor, id), 404);
      await age('0 hours');
      expect((await result(reactor, id)).status).to.equal(200);
      await reactors.manage(`DELETE /reactors/${reactor.id}`);
      expectProblem(await result(reactor, id), 404);
    });

    it('ends with the right to what the run has used', async () => {
      const rule = (container: string, transform = 'reveal') => ({
        ...{ priority: 1, container, transform, permissions: ['token:use'] },
      });
      const token = await reactors.token({ type: 'token', data: 'v', containers: ['/shop/'] });
      const { id, key } = await reactors.application({ rules: [rule('/shop/') as never] });
      const request = await idOf(echo, { args: `{{ ${token} }}` }, key);
      expect((await ended(echo, request, key)).body.raw).to.equal('v');
      const change = (rules: unknown[]) =>
        reactors.manage(`PUT /applications/${id}`, { json: { name: 'x', rules } });
      await change([rule('/shop/', 'mask')]);
      const refused = await result(echo, request, key);
      expectProblem(refused, 403);
      const denied = await firstOfTrail(refused.headers.get('bt-trace-id'));
      expect(denied).to.include({ operation: 'use', container: '/shop/', denied: true });
      expect(denied).to.include({ actor_id: id, via_id: echo.id });
      await change([rule('/other/')]);
      expectProblem(await result(echo, request, key), 403);
      await change([rule('/shop/')]);
      expect((await result(echo, request, key)).status).to.equal(200);
      await reactors.manage(`DELETE /applications/${id}`);
      expectProblem(await result(echo, request, key), 401);
    });

    it('finds the stored result sealed', async () => {
      const id = await idOf(echo, { args: 'a_result_in_clear' });
      await ended(echo, id);
      const { rows } = await reactors.control.pool.query(
        `SELECT encode(sealed, 'escape') AS sealed, r::text AS text FROM reactor_results r`,
      );
      for (const row of rows) expect(`${row.sealed} ${row.text}`).not.to.contain('in_clear');
      // A row that was given to another application does not open.
      const { id: other, key } = await reactors.application({ permissions: ['token:use'] });
      const give = 'UPDATE reactor_results SET application_id = $1 WHERE id = $2';
      await reactors.control.pool.query(give, [other, id]);
      const stolen = await result(echo, id, key);
      expect(stolen.status).to.equal(500);
      expect(stolen.text).not.to.contain('in_clear');
      // What a finished job carried is gone with it.
      const left = await reactors.control.pool.query(
        `SELECT count(*)::int AS n FROM jobs WHERE finished_at IS NOT NULL AND sealed <> ''`,
      );
      expect(left.rows[0].n).to.equal(0);
    });
  });
});
