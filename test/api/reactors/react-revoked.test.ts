/**
 * A key that is revoked while the code runs: nothing more is brought out or made by it, neither through
 * `req.bt` nor by reactors and proxies that the code calls (design section 1, invariant 4).
 */
import { expect } from 'chai';
import { type HeldDestination, startHeldDestination } from './held-destination.ts';
import { type Reactors, startReactors } from './reactors.ts';

const ALL = {
  rules: [
    {
      ...{ priority: 1, container: '/', transform: 'reveal' as const },
      permissions: ['token:create' as const, 'token:read' as const, 'token:use' as const],
    },
  ],
};

describe('a key that is revoked while the code runs', () => {
  let reactors: Reactors;
  let destination: HeldDestination;
  let caller: { id: string; key: string };
  /** Whose rights the scripts have: they last. */
  let own: { id: string };

  before(async () => {
    reactors = await startReactors();
    destination = await startHeldDestination();
  });
  after(async () => {
    await destination?.stop();
    await reactors?.stop();
  });
  beforeEach(async () => {
    caller = await reactors.application({ permissions: ['token:use'] });
    own = await reactors.application(ALL);
    // The caller is gone when the first fetch is answered.
    destination.hold = async () => {
      destination.hold = undefined;
      await reactors.manage(`DELETE /applications/${caller.id}`);
    };
  });

  const url = (path: string): string => JSON.stringify(destination.url + path);
  const tokensMade = async (): Promise<number> => {
    const { rows } = await reactors.control.pool.query(
      'SELECT count(*)::int AS n FROM tokens WHERE created_by = $1',
      [own.id],
    );
    return rows[0].n;
  };
  /** Runs it with the caller's key: what was asked of the destination, and the status. */
  const run = async (body: string): Promise<[number, string[]]> => {
    const reactor = await reactors.script(body, { application: own });
    const before = destination.paths.length;
    const { status } = await reactors.react(reactor, {}, caller.key);
    return [status, destination.paths.slice(before)];
  };

  it('calls no req.bt any more', async () => {
    const body = `
      await req.bt.tokens.create({ type: 'token', data: 'before' });
      await fetch(${url('/first')});
      const said = await req.bt.tokens.create({ type: 'token', data: 'after' })
        .then(() => 'made', ({ message }) => message);
      return { raw: said };`;
    expect(await run(body)).to.deep.equal([401, ['/first']]);
    expect(await tokensMade()).to.equal(1);
  });

  it('ends what a reactor does that the code has called', async () => {
    const called = await reactors.script(
      `await fetch(${url('/first')});
       const call = () => req.bt.tokens.create({ type: 'token', data: 'late' });
       await call().catch(() => undefined);
       await fetch(${url('/second')}).catch(() => undefined);
       return { raw: 1, tokenize: 'late' };`,
      { application: own },
    );
    const body = `return { raw: await req.bt.reactors.react('${called.id}', { args: {} }) };`;
    expect(await run(body)).to.deep.equal([401, ['/first']]);
    expect(await tokensMade()).to.equal(0);
  });

  it('ends what a proxy does that the code has called', async () => {
    const code = `module.exports = async (req) => {
      await fetch(${url('/first')});
      await fetch(${url('/second')}).catch(() => undefined);
      return { body: 'late', headers: {} };
    };`;
    const json = {
      ...{ name: 'P', destination_url: `${destination.url}/sent`, require_auth: true },
      request_transform: { code },
      application: own,
    };
    const { body: proxy } = await reactors.manage('POST /proxies', { json });
    const body = `
      const headers = { 'BT-PROXY-KEY': '${proxy.key}' };
      return { raw: await req.bt.proxy.post({ headers, body: 'x' }).catch(() => 'failed') };`;
    expect(await run(body)).to.deep.equal([401, ['/first']]);
  });
});
