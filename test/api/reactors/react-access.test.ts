/**
 * Who may run a reactor on which tokens, and that it holds: before the code starts, while it runs, and
 * before anything comes of it (design section 1, invariants 2 and 4).
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { TestTenant } from '../../support/control-plane.ts';
import { call } from '../../support/http-call.ts';
import { expectProblem } from '../tokens/token-client.ts';
import { type HeldDestination, startHeldDestination } from './held-destination.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

describe('the right to run a reactor', () => {
  let reactors: Reactors;
  let echo: Reactor;
  let other: TestTenant;
  let destination: HeldDestination;
  before(async () => {
    reactors = await startReactors();
    echo = await reactors.script('return { raw: req.args }');
    other = await reactors.control.addTenant('Globex');
    destination = await startHeldDestination();
  });
  after(async () => {
    await destination?.stop();
    await reactors?.stop();
  });

  const use = (container: string, transform: 'reveal' | 'mask' | 'redact' = 'reveal') => ({
    ...{ priority: 1, container, transform, permissions: ['token:use' as const] },
  });

  it('is nobody else’s: neither reactors nor tokens of other tenants are there', async () => {
    const { key } = await reactors.application({ permissions: ['token:use'] }, other);
    expectProblem(await reactors.react(echo, { args: 1 }, key), 404);
    const theirs = await reactors.reactor({ code: 'module.exports = () => ({})' }, other);
    expectProblem(await reactors.react(theirs), 404);
    const token = await reactors.token({ type: 'token', data: 'ours' });
    const theirEcho = await reactors.reactor(
      { code: 'module.exports = (req) => ({ raw: req.args })' },
      other,
    );
    const answer = await reactors.react(theirEcho, { args: `{{ ${token} }}` }, key);
    expectProblem(answer, 400);
    expect(answer.text).not.to.contain('ours');
    for (const id of ['nothing', '00000000-0000-4000-8000-000000000000', `${echo.id}0`, "'"]) {
      expectProblem(await reactors.react({ id }), 404);
    }
    expect((await reactors.react({ id: echo.id.toUpperCase() })).status).to.equal(200);
  });

  it('needs a key that holds token:use, in a rule or plainly', async () => {
    for (const grants of [
      { permissions: ['token:read'] },
      { type: 'public' as const, permissions: ['token:create'] },
    ]) {
      const { key } = await reactors.application(grants);
      expectProblem(await reactors.react(echo, {}, key), 403);
    }
    const { key } = await reactors.application({ rules: [use('/anywhere/')] });
    expect((await reactors.react(echo, {}, key)).status).to.equal(200);
    expectProblem(await reactors.react(echo, {}, 'key_wrong'), 401);
    expectProblem(await reactors.react(echo, {}, reactors.control.tenant.managementKey), 403);
  });

  it('covers each container by itself; the code is not started otherwise', async () => {
    const [open, closed] = await Promise.all(
      ['/open/', '/closed/'].map((container) =>
        reactors.token({ type: 'token', data: `in ${container}`, containers: [container] }),
      ),
    );
    const { key } = await reactors.application({ rules: [use('/open/')] });
    const calling = await reactors.script(
      `await fetch(${JSON.stringify(destination.url)}); return { raw: req.args }`,
    );
    expect((await reactors.react(calling, { args: `{{ ${open} }}` }, key)).body.raw).to.equal(
      'in /open/',
    );
    const before = destination.requests;
    const answer = await reactors.react(
      calling,
      { args: [`{{ ${open} }}`, `{{ ${closed} }}`] },
      key,
    );
    expectProblem(answer, 403);
    expect(answer.text).to.contain(String(closed));
    expect(answer.text).not.to.contain('in /');
    expect(destination.requests).to.equal(before);
  });

  it('puts in the mask under a mask rule, and nothing under redact', async () => {
    const token = await reactors.token({
      type: 'token',
      data: 'in clear',
      mask: '{{ data | reveal_last: 3 }}',
    });
    const { key: masking } = await reactors.application({ rules: [use('/', 'mask')] });
    const masked = await reactors.react(echo, { args: `{{ ${token} }}` }, masking);
    expect([masked.status, masked.body.raw]).to.deep.equal([200, 'XXXXXear']);
    const { key: redacting } = await reactors.application({ rules: [use('/', 'redact')] });
    expectProblem(await reactors.react(echo, { args: `{{ ${token} }}` }, redacting), 403);
  });

  it('ends with the key, the application, its time, and the reactor', async () => {
    const { id, key } = await reactors.application({ permissions: ['token:use'] });
    const react = async (reactor = echo) => (await reactors.react(reactor, {}, key)).status;
    expect(await react()).to.equal(200);
    const gone = await reactors.script('return {}');
    expect(await react(gone)).to.equal(200);
    await reactors.manage(`DELETE /reactors/${gone.id}`);
    expect(await react(gone)).to.equal(404);
    const json = { name: 'Caller', permissions: ['token:read'] };
    await reactors.manage(`PUT /applications/${id}`, { json });
    expect(await react()).to.equal(403);
    await reactors.manage(`PUT /applications/${id}`, {
      json: { ...json, permissions: ['token:use'] },
    });
    expect(await react()).to.equal(200);
    await reactors.control.pool.query(
      `UPDATE applications SET expires_at = clock_now() + interval '200 milliseconds' WHERE id = $1`,
      [id],
    );
    // Touches the application, so that the row is read again.
    await reactors.manage(`POST /applications/${id}/regenerate`);
    expect(await react()).to.equal(401);
  });

  it('is asked for again before a fetch: what was revoked meanwhile does not leave', async () => {
    const token = await reactors.token({ type: 'token', data: 'a secret' });
    const changes: [string, (id: string, reactor: Reactor) => Promise<unknown>, number][] = [
      ['a deleted application', (id) => reactors.manage(`DELETE /applications/${id}`), 401],
      [
        'a right that was taken away',
        (id) =>
          reactors.manage(`PUT /applications/${id}`, {
            json: { name: 'x', permissions: ['token:read'] },
          }),
        403,
      ],
      [
        'a rule that masks now',
        (id) =>
          reactors.manage(`PUT /applications/${id}`, {
            json: { name: 'x', rules: [use('/', 'mask')] },
          }),
        403,
      ],
      [
        'a deleted reactor',
        (_id, reactor) => reactors.manage(`DELETE /reactors/${reactor.id}`),
        404,
      ],
    ];
    const callers: string[] = [];
    const mayMake = { ...use('/'), priority: 2, permissions: ['token:create' as const] };
    for (const [what, change, status] of changes) {
      const { id, key } = await reactors.application({ rules: [mayMake, use('/')] });
      callers.push(id);
      const reactor = await reactors.script(`
        await fetch(${JSON.stringify(`${destination.url}/first`)});
        let second = 'served';
        await fetch(${JSON.stringify(`${destination.url}/second`)}).catch((error) => { second = error.message });
        return { raw: second, tokenize: { made: req.args } }`);
      const before = destination.paths.length;
      // The first fetch is answered when the right is gone.
      destination.hold = () => change(id, reactor);
      const answer = await reactors.react(reactor, { args: `{{ ${token} }}` }, key);
      destination.hold = undefined;
      expectProblem(answer, status);
      expect(answer.text, what).not.to.contain('secret');
      expect(destination.paths.slice(before), what).to.deep.equal(['/first']);
    }
    const made = await reactors.control.pool.query(
      'SELECT count(*)::int AS n FROM tokens WHERE created_by = ANY ($1)',
      [callers],
    );
    expect(made.rows[0].n).to.equal(0);
  });

  it('goes on through changes that take nothing away, and the code runs once', async () => {
    const { id } = await reactors.application({ permissions: ['token:use', 'token:create'] });
    const { key } = await reactors.application({ permissions: ['token:use'] });
    const reactor = await reactors.script(
      `await fetch(${JSON.stringify(destination.url)}); return { raw: 1, tokenize: 'made' }`,
      { application: { id } },
    );
    const before = destination.requests;
    destination.hold = async () => {
      for (const name of ['A', 'B', 'C'])
        await reactors.manage('PUT /tenants/self', { json: { name } });
      const json = { name: 'Reactor', code: 'module.exports = () => { throw 1 }' };
      await reactors.manage(`PUT /reactors/${reactor.id}`, {
        json: { ...json, application: { id } },
      });
    };
    const answer = await reactors.react(reactor, {}, key);
    destination.hold = undefined;
    expect([answer.status, answer.body.raw], answer.text).to.deep.equal([200, 1]);
    expect(destination.requests).to.equal(before + 1);
    const token = await call(reactors.url, `GET /tokens/${answer.body.tokens}`, {
      key: reactors.key,
    });
    expect(token.body.created_by).to.equal(id);
    // The next run is of the new code.
    expect((await reactors.react(reactor, {}, key)).status).to.equal(500);
  });

  it('is asked for again at the end, unless the code was quick, used no token and called nothing', async () => {
    const token = await reactors.token({ type: 'token', data: 'x' });
    const plain = await reactors.script('return { raw: 1 }');
    const calling = await reactors.script(
      `await fetch(${JSON.stringify(destination.url)}); return {}`,
    );
    const slow = await reactors.script('await new Promise((r) => setTimeout(r, 50)); return {}');
    /** Statements that ask for nothing but what is still true. */
    const asked = async (reactor: Reactor, args: unknown = {}): Promise<number> => {
      const read = async (): Promise<number> =>
        Number(
          /^sallyport_gate_reads_total (\d+)$/m.exec(
            await reactors.plane.metrics.registry.metrics(),
          )?.[1],
        );
      const before = await read();
      expect((await reactors.react(reactor, { args })).status).to.equal(200);
      return (await read()) - before;
    };
    for (const reactor of [plain, calling, slow]) await asked(reactor);
    expect(await asked(calling)).to.equal(3);
    expect(await asked(slow)).to.equal(2);
    // The token's own reading says it before.
    expect(await asked(plain, `{{ ${token} }}`)).to.equal(1);
    // However long the machine took for one of them.
    const quick: number[] = [];
    for (let run = 0; run < 10; run += 1) quick.push(await asked(plain));
    expect(Math.min(...quick)).to.be.at.most(1);
  });

  it('is gone at the end of code that only took its time when its key was revoked meanwhile', async () => {
    const { id, key } = await reactors.application({ permissions: ['token:use'] });
    const slow = await reactors.script('await new Promise((r) => setTimeout(r, 1_500)); return {}');
    const running = reactors.react(slow, {}, key);
    await delay(300);
    await reactors.manage(`DELETE /applications/${id}`);
    expectProblem(await running, 401);
  });

  it('runs the code of the last edit, whoever else runs it meanwhile', async () => {
    const formula = { code: 'module.exports = () => ({ raw: 0 })' };
    const reactor = await reactors.reactor({ formula });
    let over = false;
    const others = Array.from({ length: 4 }, async () => {
      while (!over) expect((await reactors.react(reactor)).status).to.equal(200);
    });
    for (let edit = 1; edit <= 8; edit += 1) {
      const json = {
        name: 'F',
        type: 'private',
        code: `module.exports = () => ({ raw: ${edit} })`,
      };
      await reactors.manage(`PUT /reactor-formulas/${reactor.formula_id}`, { json });
      expect((await reactors.react(reactor)).body.raw).to.equal(edit);
    }
    over = true;
    await Promise.all(others);
  });

  it('makes tokens as the caller when the reactor’s application may not, or is gone', async () => {
    const draft = { code: "module.exports = () => ({ tokenize: 'made' })" };
    const caller = await reactors.application({ permissions: ['token:use', 'token:create'] });
    for (const grants of [{ permissions: ['token:read'] }, { permissions: ['token:create'] }]) {
      const own = await reactors.application(grants);
      const reactor = await reactors.reactor({ ...draft, application: { id: own.id } });
      const creatorOf = async () => {
        const { body } = await reactors.react(reactor, {}, caller.key);
        const made = await call(reactors.url, `GET /tokens/${body.tokens}`, { key: reactors.key });
        return made.body.created_by;
      };
      const may = grants.permissions.includes('token:create');
      expect(await creatorOf()).to.equal(may ? own.id : caller.id);
      await reactors.manage(`DELETE /applications/${own.id}`);
      expect(await creatorOf()).to.equal(caller.id);
    }
  });
});
