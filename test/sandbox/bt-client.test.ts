/** `req.bt` against hostile customer code in real sandboxes; the gateway's side is in test/api/reactors. */
import { expect } from 'chai';
import type { ScriptService } from '../../shared/sandbox/script-services.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';

const TOKEN = { status: 200, body: { tenant_id: 't', data: { a_b: 1 } } };

describe('req.bt in a sandbox', () => {
  let sandbox: Sandbox;
  /** Every text that came out. */
  let asked: string[];
  const bt: ScriptService = async (request) => {
    asked.push(request);
    return JSON.stringify(TOKEN);
  };
  const value = (body: string, source = '') =>
    sandbox.value(`${source} module.exports = async ({ bt }) => { ${body} };`, {
      services: { bt },
    });

  before(async () => {
    sandbox = await startSandbox({ thread_count: 2 });
  });
  beforeEach(() => {
    asked = [];
  });
  after(() => sandbox.supervisor.close());

  it('is there with a service, null without', async () => {
    const kinds = `return Object.keys(bt).concat(Object.keys(bt.tokens), Object.keys(bt.reactors));`;
    expect(await value(kinds)).to.have.members([
      ...['tokens', 'reactors', 'proxy', 'tokenize', 'detokenize', 'react'],
      ...['create', 'retrieve', 'update', 'delete', 'list', 'search'],
    ]);
    const source = 'module.exports = ({ bt }) => ({ bt });';
    expect(await sandbox.value(source)).to.deep.equal({ bt: null });
  });

  it('answers in camelCase', async () => {
    const token = await value(`return bt.tokens.retrieve('x');`);
    expect(token).to.deep.equal({ tenantId: 't', data: { a_b: 1 } });
  });

  it('sends an id as it is, whatever path it looks like', async () => {
    const ids = [
      '../applications',
      'a/../../keys',
      'x?role=admin',
      'x#y',
      '%2e%2e%2fx',
      '__proto__',
    ];
    await value(`for (const id of ${JSON.stringify(ids)}) await bt.tokens.delete(id);`);
    const sent = asked.map((text) => JSON.parse(text));
    expect(sent).to.deep.equal(ids.map((id) => ({ operation: 'deleteToken', id })));
  });

  it('may be changed by its script, for that run alone', async () => {
    const change = `
      bt.tokens.retrieve = () => 'mine';
      Object.setPrototypeOf(bt.tokens, { list: 1 });
      Object.prototype.operation = 'deleteTenant';
      return bt.tokens.retrieve('x');`;
    expect(await value(change)).to.equal('mine');
    expect(await value(`return bt.tokens.retrieve('x');`)).to.have.property('tenantId', 't');
    expect(asked).to.deep.equal(['{"operation":"getToken","id":"x"}']);
  });

  it('works on prototypes that its script has broken, or fails in that run alone', async () => {
    const vandal = `
      for (const prototype of [Array.prototype, String.prototype, Promise.prototype, Map.prototype]) {
        for (const name of Object.getOwnPropertyNames(prototype)) {
          if (name !== 'constructor' && name !== 'length') {
            try { prototype[name] = () => { throw new Error('broken'); }; } catch {}
          }
        }
      }
      Promise.prototype.then = undefined;`;
    const { result } = await sandbox.run(
      `${vandal} module.exports = async ({ bt }) => bt.tokens.retrieve('x');`,
      { services: { bt } },
    );
    expect(result.kind).to.be.oneOf(['ok', 'error']);
    expect(await value(`return bt.tokens.retrieve('x');`)).to.have.property('tenantId', 't');
  });

  it('lets no code behind it', async () => {
    const spy = `
      const seen = [];
      Error.prepareStackTrace = (error, sites) => {
        for (const site of sites) seen.push(site.getFunction(), site.getThis());
        return 'none';
      };
      const watch = (prototype, name) => {
        const original = prototype[name];
        prototype[name] = function (...values) { seen.push(this, ...values); return original.apply(this, values); };
      };
      watch(Promise.prototype, 'then');
      watch(Function.prototype, 'call');
      const parse = JSON.parse;
      JSON.parse = (text, ...rest) => { seen.push(new Error().stack); return parse(text, ...rest); };`;
    const body = `
      await bt.tokens.retrieve('x');
      await bt.tokens.retrieve({ toString() { seen.push(new Error().stack); return 'x'; } });
      const functions = seen.filter((item) => typeof item === 'function');
      for (const item of functions) {
        try { item('bt', '{"operation":"deleteTenant"}'); } catch {}
      }
      // The text of one of ours would tell it; its own and those of the engine are no secret.
      const ours = functions.filter((item) => /whyRefused|native\\(|internal/.test(String(item)));
      return [seen.length > 0, ours.length, typeof call, typeof native, typeof internal, typeof services];`;
    const nothing = [true, 0, 'undefined', 'undefined', 'undefined', 'undefined'];
    expect(await value(body, spy)).to.deep.equal(nothing);
    expect(asked).to.have.length(2);
    expect(asked.join()).not.to.include('deleteTenant');
  });

  it('cannot be required, nor what it is made of', async () => {
    const names = ['bt-client', 'calls', 'case-conversion', './calls', 'start'];
    const body = `return ${JSON.stringify(names)}.map((name) => {
      try { require(name); return 'loaded'; } catch (error) { return error.code; }
    });`;
    expect(await value(body)).to.deep.equal(names.map(() => 'MODULE_NOT_FOUND'));
  });

  it('is dead when the run has ended, also in a timer and in a promise', async () => {
    const body = `
      const late = () => { bt.tokens.retrieve('late').then(late, late); };
      setTimeout(late, 1);
      setInterval(late, 1);
      Promise.resolve().then(() => Promise.resolve()).then(() => setTimeout(late, 0));
      bt.tokens.retrieve('in time').then(late);
      return 'done';`;
    expect(await value(body)).to.equal('done');
    // Whatever could still come out of that run comes before what this one asks.
    await value(`await new Promise((resolve) => setTimeout(resolve, 50)); await bt.tokenize(1);`);
    const ids = asked.map((text) => JSON.parse(text).id);
    expect(ids.filter((id) => id === 'late')).to.deep.equal([]);
  });

  it('is dead in the next run of a context that is kept', async () => {
    const source = `
      let kept;
      module.exports = async ({ bt, args }) => {
        const first = kept === undefined;
        kept ??= () => bt.tokens.retrieve('kept');
        if (first) setTimeout(kept, 5);
        else await new Promise((resolve) => setTimeout(resolve, 50));
        return first;
      };`;
    const request = { script_version: 'kept', reuse: true, services: { bt } };
    expect(await sandbox.value(source, request)).to.equal(true);
    expect(await sandbox.value(source, request)).to.equal(false);
    expect(asked).to.deep.equal([]);
  });

  it('takes 10,000 calls at once: 1,000 are made, 32 at a time, the rest fail', async () => {
    let inFlight = 0;
    let highest = 0;
    const slow: ScriptService = async () => {
      inFlight += 1;
      highest = Math.max(highest, inFlight);
      await new Promise((resolve) => setImmediate(resolve));
      inFlight -= 1;
      return JSON.stringify(TOKEN);
    };
    const source = `module.exports = async ({ bt }) => {
      const calls = Array.from({ length: 10000 }, (_, index) => bt.tokens.retrieve(index));
      const ends = await Promise.allSettled(calls);
      const failed = ends.flatMap(({ reason }) => reason ? [reason] : []);
      const kinds = new Set(failed.map(({ name, status, code }) => [name, status, code].join()));
      return [ends.length - failed.length, ...kinds];
    };`;
    const ended = await sandbox.value(source, { services: { bt: slow } });
    expect(ended).to.deep.equal([1_000, 'BasisTheoryApiError,-1,TOO_MANY_CALLS']);
    expect(highest).to.equal(32);
  });

  it('does not send what is too large, and says so', async () => {
    const body = `
      try { await bt.tokenize('x'.repeat(9 * 1024 * 1024)); } catch (error) {
        return [error.name, error.status, error.code];
      }`;
    expect(await value(body)).to.deep.equal(['BasisTheoryApiError', -1, 'TOO_LARGE']);
    expect(asked).to.deep.equal([]);
  });
});
