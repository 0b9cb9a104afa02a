/** `req.bt` in real sandboxes against real routes: the same answers as over HTTP, and no more rights. */
import { BasisTheory } from '@basis-theory/basis-theory-js';
import { expect } from 'chai';
import type { AccessRule } from '../../../shared/access/access-rules.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { REVEAL_ALL } from '../tokens/vault.ts';
import { type Scripts, startScripts, type TestApplication } from './scripts.ts';

const CARD = '4242424242424242';
const MASKED: AccessRule[] = [
  { priority: 1, container: '/pci/', transform: 'mask', permissions: ['token:read'] },
];

const LIVE = new AbortController().signal;

/** A script that answers how the call `expression` failed. */
const failure = (expression: string): string =>
  `try { await ${expression}; return 'it did not fail'; } catch (error) {
     const { name, message, status, data, code } = error;
     return { name, message, status, data, code, isError: error instanceof Error };
   }`;

describe('req.bt', () => {
  let scripts: Scripts;
  let everything: TestApplication;
  const value = <T = JsonObject>(body: string, args?: unknown, application = everything) =>
    scripts.value<T>(application, body, args);

  before(async () => {
    scripts = await startScripts();
    const search = [{ ...REVEAL_ALL[0], permissions: [...(REVEAL_ALL[0]?.permissions ?? [])] }];
    search[0]?.permissions?.push('token:search');
    everything = await scripts.application({ rules: search as AccessRule[] });
  });
  after(() => scripts.stop());

  describe('answers like the client library over HTTP', () => {
    /** What the library gets when it does the same as the script. */
    async function withLibrary(use: (bt: Library) => Promise<unknown>): Promise<unknown> {
      const init = { apiBaseUrl: scripts.vault.url, disableTelemetry: true };
      const bt = (await new BasisTheory().init(everything.key, init)) as unknown as Library;
      return use(bt);
    }
    type Library = { tokens: Record<string, (...values: unknown[]) => Promise<unknown>> } & Record<
      string,
      (...values: unknown[]) => Promise<unknown>
    >;
    const withoutIds = (token: unknown) => {
      const { id, createdAt, ...rest } = token as JsonObject;
      expect([typeof id, typeof createdAt]).to.deep.equal(['string', 'string']);
      return rest;
    };
    const token = {
      type: 'token',
      data: { card_number: 'x', deepValue: [{ a_b: 1, cD: null }] },
      metadata: { user_id: '7', camelCase: 'y' },
      mask: { card_number: '{{ data.card_number }}', someName: 'z' },
      searchIndexes: ['{{ data.card_number }}'],
      containers: ['/a/b/'],
    };

    it('when it creates', async () => {
      const created = await value('return bt.tokens.create(req.args);', token);
      const theirs = await withLibrary((bt) => bt.tokens.create?.(token) as Promise<unknown>);
      expect(withoutIds({ ...created, fingerprint: 1 })).to.deep.equal(
        withoutIds({ ...(theirs as JsonObject), fingerprint: 1, createdBy: everything.id }),
      );
      expect(created.data).to.deep.equal({ card_number: 'x', some_name: 'z' });
    });

    it('when it reads, lists, searches and changes', async () => {
      const { id } = await value('return bt.tokens.create(req.args);', token);
      const reads = [
        ['retrieve', [id]],
        ['list', [{ id: [id], type: 'token', metadata: { user_id: '7' }, page: 1, size: 5 }]],
        ['search', [{ query: `id:${id}`, size: 5 }]],
        ['update', [id, { metadata: { user_id: '8', camelCase: null }, deduplicateToken: false }]],
      ] as const;
      for (const [name, values] of reads) {
        const mine = await value(`return bt.tokens.${name}(...req.args);`, values);
        const theirs = await withLibrary((bt) => bt.tokens[name]?.(...values) as Promise<unknown>);
        const stamped = (answer: unknown) =>
          JSON.stringify(answer).replace(/"modifiedAt":"[^"]*"/, '');
        expect(stamped(mine), name).to.equal(stamped(theirs));
      }
      expect(await value('return [await bt.tokens.delete(req.args)];', id)).to.deep.equal([null]);
      const gone = await value(failure('bt.tokens.retrieve(req.args)'), id);
      expect(gone.status).to.equal(404);
    });

    it('when it tokenizes and detokenizes', async () => {
      const values = { first_name: 'Ann', cardOf: { type: 'token', data: { a_b: 1 } } };
      const made = await value(
        `const tokens = await bt.tokenize(req.args);
         const back = await bt.detokenize({ first: '{{ ' + tokens.first_name + ' }}' });
         return { tokens, back };`,
        values,
      );
      const { tokens, back } = made as { tokens: JsonObject; back: JsonObject };
      expect(back).to.deep.equal({ first: 'Ann' });
      expect(tokens.cardOf).to.include({ tenant_id: everything.tenant_id, type: 'token' });
    });

    it('when it fails', async () => {
      const bad = { type: 'card', data: { number: '1', 'odd-name': 2 }, searchIndexes: ['{{ x'] };
      const failed = await value(failure('bt.tokens.create(req.args)'), bad);
      const theirs = await withLibrary(async (bt) => {
        try {
          return await bt.tokens.create?.(bad);
        } catch (error) {
          const { name, message, status, data } = error as JsonObject;
          return { name, message, status, data };
        }
      });
      expect(failed).to.deep.equal({ ...(theirs as object), isError: true });
      expect(failed.name).to.equal('BasisTheoryApiError');
      expect(failed.status).to.equal(400);
    });
  });

  it('keeps every number of token data exact, or refuses it', async () => {
    const data = { small: 1.5, large: 9007199254740991, negative: -1e-7 };
    const created = await value(
      `const { id } = await bt.tokens.create({ type: 'token', data: req.args });
       return bt.tokens.retrieve(id);`,
      data,
    );
    expect(created.data).to.deep.equal(data);
  });

  it('holds what it is given to the limits of the routes', async () => {
    const large = await value(
      failure(`bt.tokens.create({ type: 'token', data: 'x'.repeat(1024 * 1024) })`),
    );
    expect(large.status).to.equal(413);
    const body = `bt.detokenize({ text: 'x'.repeat(4 * 1024 * 1024) })`;
    expect((await value<JsonObject>(`return ${body}`)).text).to.have.length(4 * 1024 * 1024);
    const larger = await value(failure(body.replace('4 *', '5 *')));
    expect(larger.status).to.equal(413);
    const deep = await value(failure(`bt.tokenize(JSON.parse('['.repeat(500) + ']'.repeat(500)))`));
    expect(deep.status).to.equal(400);
    const many = await value(failure(`bt.tokens.list({ id: Array(2000).fill('x'.repeat(9)) })`));
    expect(many.status).to.equal(414);
    const surrogate = await value(failure(`bt.tokens.create({ type: 'token', data: '\\ud800' })`));
    expect(surrogate.status).to.equal(400);
  });

  describe('has the rights of its application and no others', () => {
    let id: string;
    before(async () => {
      const created = await scripts.vault.tokens.created({
        ...{ type: 'card', data: { number: CARD }, containers: ['/pci/high/'] },
      });
      id = created.id;
    });

    it('which decide what it sees', async () => {
      const masked = await scripts.application({ rules: MASKED });
      const seen = await value<JsonObject>('return bt.tokens.retrieve(req.args);', id, masked);
      expect(seen.data).to.include({ number: 'XXXXXXXXXXXX4242' });
      const clear = await value<JsonObject>('return bt.tokens.retrieve(req.args);', id);
      expect(clear.data).to.include({ number: CARD });
    });

    it('in each of its calls', async () => {
      const none = await scripts.application({
        rules: [{ priority: 1, container: '/x/', transform: 'mask', permissions: ['token:use'] }],
      });
      const calls = [
        ...[`tokens.create({ type: 'token', data: 1 })`, 'tokens.retrieve(req.args)'],
        ...['tokens.update(req.args, {})', 'tokens.delete(req.args)', 'tokens.list()'],
        ...[
          `tokens.search({})`,
          'tokenize({ a: 1 })',
          `detokenize({ a: '{{ ' + req.args + ' }}' })`,
        ],
      ];
      for (const expression of calls) {
        const failed = await value(failure(`bt.${expression}`), id, none);
        expect(failed.status, expression).to.equal(403);
      }
    });

    it('as they are at the moment of the call', async () => {
      const application = await scripts.application({ rules: REVEAL_ALL });
      const service = scripts.service(application);
      const ask = async () => {
        const answer = await service(`{"operation":"getToken","id":"${id}"}`, LIVE);
        const { status, body } = JSON.parse(answer);
        return status === 200 ? body.data.number : status;
      };
      const change = (line: string, json?: unknown) =>
        call(scripts.vault.url, `${line} /applications/${application.id}`, {
          key: scripts.vault.control.tenant.managementKey,
          json,
        });
      expect(await ask()).to.equal(CARD);
      await change('PUT', { name: 'Scripts', rules: MASKED });
      expect(await ask()).to.equal('XXXXXXXXXXXX4242');
      const other = [{ ...MASKED[0], container: '/other/' }];
      await change('PUT', { name: 'Scripts', rules: other });
      expect(await ask()).to.equal(403);
      await change('PUT', { name: 'Scripts', rules: REVEAL_ALL });
      expect(await ask()).to.equal(CARD);
      expect((await change('DELETE')).status).to.equal(204);
      expect(await ask()).to.equal(401);
    });

    it('also while a script runs', async () => {
      const application = await scripts.application({ rules: REVEAL_ALL });
      const running = scripts.run(
        application,
        `const metadata = { run: '${application.id}' };
         const { data } = await bt.tokens.retrieve(req.args);
         await bt.tokens.create({ type: 'token', data: 'running', metadata });
         for (;;) {
           try { await bt.tokens.retrieve(req.args); } catch ({ status, data: { detail } }) {
             return { first: data.number, status, detail };
           }
           await new Promise((resolve) => setTimeout(resolve, 5));
         }`,
        id,
      );
      const marked = `?metadata.run=${application.id}`;
      while ((await scripts.vault.tokens.list(marked)).body.data.length === 0);
      await call(scripts.vault.url, `DELETE /applications/${application.id}`, {
        key: scripts.vault.control.tenant.managementKey,
      });
      const { result } = await running;
      const detail = 'The application of the reactor does not exist any more, or its time is over';
      const value = JSON.stringify({ first: CARD, status: 401, detail });
      expect(result).to.deep.equal({ kind: 'ok', value });
    });

    it('and none in another tenant, whose tokens it does not find', async () => {
      const other = await scripts.vault.control.addTenant('Other');
      const stranger = await scripts.application({ rules: REVEAL_ALL }, other);
      const calls = [
        ...['tokens.retrieve(req.args)', 'tokens.update(req.args, {})', 'tokens.delete(req.args)'],
        `detokenize({ a: '{{ ' + req.args + ' }}' })`,
      ];
      for (const expression of calls) {
        const failed = await value(failure(`bt.${expression}`), id, stranger);
        expect(failed.status, expression).to.be.oneOf([400, 404]);
        expect(JSON.stringify(failed)).not.to.include(CARD);
      }
      const listed = await value<JsonObject>(
        'return bt.tokens.list({ id: req.args });',
        id,
        stranger,
      );
      expect(listed.data).to.deep.equal([]);
      expect((await scripts.vault.tokens.read(id)).status).to.equal(200);
    });
  });
});
