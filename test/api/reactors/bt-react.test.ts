/** Reactors that call reactors through `req.bt.reactors.react`, over HTTP from end to end. */
import { expect } from 'chai';
import type { AccessRule } from '../../../shared/access/access-rules.ts';
import type { TestTenant } from '../../support/control-plane.ts';
import type { JsonObject } from '../../support/http-call.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

const RULE: AccessRule = {
  ...{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:use'] },
};
const USE = { rules: [RULE] };

/** Calls the reactor `args.to` with `args.args`; a failure of that is what it answers. */
const CALLER = `
  try { return { raw: await req.bt.reactors.react(req.args.to, { args: req.args.args }) }; }
  catch ({ name, message, status, data }) { return { raw: { name, message, status, data } }; }`;
/** Calls itself until `left` is 0, \`wide\` times at a time. */
const RECURSIVE = `
  const { self, left, wide = 1 } = req.args;
  if (left === 0) return { raw: 'end' };
  const call = () => req.bt.reactors.react(self, { args: { self, left: left - 1, wide } });
  const ends = await Promise.allSettled(Array.from({ length: wide }, call));
  if (wide === 1 && ends[0].reason) throw ends[0].reason;
  return { raw: wide === 1 ? [ends[0].value.raw] : ends.map(({ reason }) => reason?.status ?? 200) };`;

describe('a reactor that calls a reactor', () => {
  let reactors: Reactors;
  let application: { id: string };
  const script = (body: string): Promise<Reactor> => reactors.script(body, { application });
  const raw = async (reactor: Reactor, args: unknown): Promise<unknown> => {
    const { status, text, body } = await reactors.react(reactor, { args });
    expect(status, text).to.equal(200);
    return body.raw;
  };

  before(async () => {
    reactors = await startReactors();
    application = await reactors.application(USE);
  });
  after(() => reactors?.stop());

  it('gets what HTTP would answer, as it is', async () => {
    const inner = await script(
      `return { raw: { a_b: req.args.x, cD: 1 }, tokenize: { some_name: 'secret' } };`,
    );
    const rules: AccessRule[] = [{ ...RULE, permissions: ['token:use', 'token:create'] }];
    const creator = await reactors.application({ rules });
    const outer = await reactors.script(CALLER, { application: creator });
    const answer = (await raw(outer, { to: inner.id, args: { x: [1] } })) as JsonObject;
    expect(answer.raw).to.deep.equal({ a_b: [1], cD: 1 });
    expect(Object.keys(answer.tokens as object)).to.deep.equal(['some_name']);
  });

  it('has its expressions replaced with the rights of its application', async () => {
    const id = await reactors.token({ type: 'token', data: 'in clear', containers: ['/a/'] });
    const inner = await script('return { raw: { got: req.args } };');
    // Not an expression for the outer reaction: put together inside.
    const outer = `
      try { return { raw: await req.bt.reactors.react(req.args.to, { args: '{' + '{ ' + req.args.id + ' }}' }) }; }
      catch ({ status }) { return { raw: status }; }`;
    const args = { to: inner.id, id };
    expect(await raw(await script(outer), args)).to.deep.equal({ raw: { got: 'in clear' } });
    const other = await reactors.application({ rules: [{ ...RULE, container: '/b/' }] });
    const narrowed = await reactors.script(outer, { application: other });
    expect(await raw(narrowed, args)).to.equal(403);
  });

  it('needs token:use for its own application', async () => {
    const inner = await script('return {};');
    const other = await reactors.application({ permissions: ['token:read'] });
    const outer = await reactors.script(CALLER, { application: other });
    expect(await raw(outer, { to: inner.id })).to.include({ status: 403 });
  });

  it('finds none of another tenant, and none behind a path', async () => {
    const other: TestTenant = await reactors.control.addTenant('Other');
    const code = `module.exports = () => ({ raw: 'theirs' });`;
    const theirs = await reactors.reactor({ code }, other);
    const outer = await script(CALLER);
    const paths = [
      `${outer.id}/../${outer.id}`,
      '../tokens',
      '',
      `${outer.id}?x`,
      `${outer.id}/react`,
    ];
    for (const to of [theirs.id, ...paths]) {
      expect(await raw(outer, { to })).to.include({ status: 404 });
    }
  });

  it('is told how the other has failed, in the words of that one', async () => {
    const inner = await script(`
      const { BadRequestError, CustomHttpResponseError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
      if (req.args === 'custom') throw new CustomHttpResponseError({ status: 402, headers: { 'Content-Type': 'text/plain' }, body: 'no_money' });
      throw new BadRequestError({ some_field: ['is bad'] });`);
    const outer = await script(CALLER);
    const failed = (await raw(outer, { to: inner.id })) as JsonObject;
    expect(failed).to.include({ name: 'BasisTheoryApiError', status: 400 });
    expect((failed.data as JsonObject).errors).to.deep.equal({ some_field: ['is bad'] });
    expect(await raw(outer, { to: inner.id, args: 'custom' })).to.deep.equal({
      ...{ name: 'BasisTheoryApiError', message: 'Request failed with status code 402' },
      ...{ status: 402, data: 'no_money' },
    });
  });

  it('may be the same one, three deep and no deeper', async () => {
    const { id } = await script(RECURSIVE);
    expect(await raw({ id, formula_id: undefined }, { self: id, left: 2 })).to.deep.equal([
      ['end'],
    ]);
    const deeper = await reactors.react({ id }, { args: { self: id, left: 3 } });
    expect(deeper.status).to.equal(500);
    expect(deeper.text).to.include('Request failed with status code');
  });

  it('ends with its own answer, or as busy, when 140 at once wait for another', async () => {
    const inner = await script(`
      await new Promise((resolve) => setTimeout(resolve, 100));
      return { raw: req.args };`);
    const outer = await script(CALLER);
    // More than a tenant may have started: the rest is refused, and comes again.
    const givenUpAt = Date.now() + 20_000;
    const untilServed = async (args: number): Promise<unknown> => {
      if (Date.now() > givenUpAt) throw new Error('the reactions wait for each other');
      const { status, body } = await reactors.react(outer, { args: { to: inner.id, args } });
      if (status === 429) return untilServed(args);
      expect(status).to.equal(200);
      return body.raw;
    };
    const ends = await Promise.all(Array.from({ length: 140 }, (_, index) => untilServed(index)));
    for (const [index, end] of ends.entries()) {
      const { status, raw: own } = end as JsonObject;
      if (status !== 429) expect(own).to.equal(index);
    }
  });

  it('cannot take the sandbox from another tenant by calling itself many times over', async () => {
    const other = await reactors.control.addTenant('Neighbour');
    const { key } = await reactors.application(USE, other);
    const code = 'module.exports = ({ args }) => ({ raw: args + 1 });';
    const neighbour = await reactors.reactor({ code }, other);
    const { id } = await script(RECURSIVE);
    let over = false;
    const bomb = reactors.react({ id }, { args: { self: id, left: 2, wide: 30 } }).finally(() => {
      over = true;
    });
    do {
      const { status, text } = await reactors.react(neighbour, { args: 1 }, key);
      expect([status, text]).to.deep.equal([200, '{"raw":2}']);
    } while (!over);
    const { status, body } = await bomb;
    expect(status).to.equal(200);
    expect(body.raw).to.have.length(30);
    for (const end of body.raw as number[]) expect(end).to.be.oneOf([200, 429, 503]);
  });

  it('has no client any more, at the very next reaction, once its application is deleted', async () => {
    const gone = await reactors.application(USE);
    const reactor = await reactors.script('return { raw: req.bt === null };', {
      application: gone,
    });
    expect(await raw(reactor, null)).to.equal(false);
    await reactors.manage(`DELETE /applications/${gone.id}`);
    expect(await raw(reactor, null)).to.equal(true);
  });
});
