import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import pg from 'pg';
import { randomCardNumber } from '../../support/card-numbers.ts';
import { type Answer, call, type JsonObject } from '../../support/http-call.ts';
import { startJobRunner } from '../reactors/job-runner.ts';
import { type Reactors, startReactors } from '../reactors/reactors.ts';
import { type TrailRow, trailOf } from './trail.ts';

/** Every access of a token leaves exactly its rows: who, what, which, where, through what. */
describe('the audit trail of tokens', () => {
  let planes: Reactors;
  let tenant_id: string;
  let owner: { id: string; key: string };

  before(async () => {
    planes = await startReactors({ SALLYPORT_AUDIT: 'strict' });
    tenant_id = planes.control.tenant.id;
    owner = await planes.application({
      rules: [
        {
          ...{ priority: 1, container: '/', transform: 'reveal' },
          permissions: [
            ...['token:create', 'token:read', 'token:update', 'token:delete'],
            ...['token:use', 'token:search'],
          ] as never[],
        },
      ],
    });
  });
  after(() => planes.stop());

  type Sent = Answer<JsonObject> & { rows: TrailRow[] };
  /** A request, and the rows of its trace when it has been answered. */
  async function send(
    line: string,
    json?: unknown,
    key = owner.key,
    own: Record<string, string> = {},
  ): Promise<Sent> {
    const trace = randomUUID();
    const headers = { 'bt-trace-id': trace, ...own };
    const answer = await call(planes.url, line, { key, headers, ...(json ? { json } : {}) });
    return { ...answer, rows: await trailOf(planes.control.pool, tenant_id, trace) };
  }

  async function token(json: JsonObject = {}): Promise<string> {
    const made = await send('POST /tokens', { type: 'token', data: randomUUID(), ...json });
    expect(made.status, made.text).to.equal(201);
    return String(made.body.id);
  }

  /** Each row without the tenant and the trace, which `send` has asked for. */
  const told = (rows: TrailRow[]): string[] =>
    rows.map((row) =>
      [
        ...(row.denied ? ['denied'] : []),
        `${row.operation} ${row.entity_type} ${row.entity_id} in ${row.container}`,
        ...(row.via_id === null ? [] : [`via ${row.via_type} ${row.via_id}`]),
        `by ${row.actor_type} ${row.actor_id}`,
      ].join(' '),
    );

  it('tells of tokens that were created, read, changed and deleted', async () => {
    const made = await send('POST /tokens', { type: 'token', data: 'x', containers: ['/a/'] });
    const id = String(made.body.id);
    expect(told(made.rows)).to.deep.equal([`create token ${id} in /a/ by application ${owner.id}`]);
    const read = await send(`GET /tokens/${id}`);
    expect(told(read.rows)).to.deep.equal([`read token ${id} in /a/ by application ${owner.id}`]);
    const media = { 'content-type': 'application/merge-patch+json' };
    const patch = { containers: ['/b/'] };
    const patched = await send(`PATCH /tokens/${id}`, patch, owner.key, media);
    expect(told(patched.rows)).to.deep.equal([
      `update token ${id} in /b/ by application ${owner.id}`,
    ]);
    const gone = await send(`DELETE /tokens/${id}`);
    expect(told(gone.rows)).to.deep.equal([`delete token ${id} in /b/ by application ${owner.id}`]);
    expect((await send(`GET /tokens/${id}`)).rows).to.deep.equal([]);
  });

  it('tells of each token that a list, a search or detokenization has shown', async () => {
    const ids = [await token(), await token()];
    const read = ids.map((id) => `read token ${id} in /general/high/ by application ${owner.id}`);
    const listed = await send(`GET /tokens?id=${ids.join('&id=')}`);
    expect(told(listed.rows)).to.have.members(read);
    const counted = await send(`GET /tokens?id=${ids.join('&id=')}&size=0`);
    expect([counted.status, counted.rows]).to.deep.equal([200, []]);
    const query = `id:${ids[0]}`;
    const found = await send('POST /tokens/search', { query });
    expect(found.status, found.text).to.equal(200);
    expect(told(found.rows)).to.deep.equal(read.slice(0, 1));
    const shown = await send('POST /detokenize', { a: ids.map((id) => `{{ ${id} }}`), b: 1 });
    expect(told(shown.rows)).to.have.members(read);
  });

  it('tells of all tokens of a tokenization, and of one that was there already', async () => {
    const made = await send('POST /tokenize', {
      first: { type: 'token', data: 'one' },
      second: { type: 'token', data: 'two', containers: ['/z/'] },
    });
    expect(made.status, made.text).to.equal(200);
    expect(told(made.rows).map((text) => text.replace(/[0-9a-f]{8}-\S+/, 'X'))).to.have.members([
      `create token X in /general/high/ by application ${owner.id}`,
      `create token X in /z/ by application ${owner.id}`,
    ]);
    const same = { type: 'token', data: randomUUID(), deduplicate_token: true };
    const first = await send('POST /tokens', same);
    const id = String(first.body.id);
    expect(told(first.rows)).to.deep.equal([
      `create token ${id} in /general/high/ by application ${owner.id}`,
    ]);
    expect(told((await send('POST /tokens', same)).rows)).to.deep.equal([
      `read token ${id} in /general/high/ by application ${owner.id}`,
    ]);
  });

  it('tells of a transaction when it is committed, and of what was rolled back nothing', async () => {
    const doomed = await token();
    const inTransaction = async (ending: string) => {
      const transaction = String((await send('POST /transactions')).body.id);
      const within = { 'bt-transaction-id': transaction };
      const made = await send('POST /tokens', { type: 'token', data: 'x' }, owner.key, within);
      const gone = await send(`DELETE /tokens/${doomed}`, undefined, owner.key, within);
      expect([made.status, gone.status]).to.deep.equal([201, 204]);
      expect([...made.rows, ...gone.rows]).to.deep.equal([]);
      const { status, rows } = await send(`POST /transactions/${transaction}/${ending}`);
      expect(status).to.equal(200);
      return { id: String(made.body.id), rows: told(rows) };
    };
    expect((await inTransaction('rollback')).rows).to.deep.equal([]);
    const { id, rows } = await inTransaction('commit');
    expect(rows).to.have.members([
      `create token ${id} in /general/high/ by application ${owner.id}`,
      `delete token ${doomed} in /general/high/ by application ${owner.id}`,
    ]);
  });

  it('tells of what failed nothing but what happened', async () => {
    const id = await token();
    const taken = await send('POST /tokens', { id, type: 'token', data: 'x' });
    expect([taken.status, taken.rows]).to.deep.equal([409, []]);
    const wrong = await send('POST /tokenize', [
      { type: 'token', data: 'x' },
      { id, type: 'token', data: 'x' },
    ]);
    expect([wrong.status, wrong.rows]).to.deep.equal([409, []]);
    const unknown = await send('POST /detokenize', { a: `{{ ${id} }}`, b: '{{ nobody }}' });
    expect([unknown.status, unknown.rows]).to.deep.equal([400, []]);
  });

  describe('of attempts that were denied', () => {
    let poor: { id: string; key: string };
    before(async () => {
      const permissions = ['token:read', 'token:update', 'token:delete', 'token:use'] as never[];
      poor = await planes.application({
        rules: [{ priority: 1, container: '/a/', transform: 'reveal', permissions }],
      });
    });

    it('names the token, where it is, and who tried', async () => {
      const id = await token({ containers: ['/secret/'] });
      const by = `token ${id} in /secret/ by application ${poor.id}`;
      const media = { 'content-type': 'application/merge-patch+json' };
      const tried = [
        await send(`GET /tokens/${id}`, undefined, poor.key),
        await send(`PATCH /tokens/${id}`, { metadata: null }, poor.key, media),
        await send(`DELETE /tokens/${id}`, undefined, poor.key),
        await send('POST /detokenize', [`{{ ${id} }}`], poor.key),
      ];
      expect(tried.map(({ status }) => status)).to.deep.equal([403, 403, 403, 403]);
      expect(tried.flatMap(({ rows }) => told(rows))).to.deep.equal([
        `denied read ${by}`,
        `denied update ${by}`,
        `denied delete ${by}`,
        `denied read ${by}`,
      ]);
    });

    it('names the operation where there is no token yet', async () => {
      const tried = [
        await send('POST /tokens', { type: 'token', data: 'x' }, poor.key),
        await send('POST /tokens/search', { query: '' }, poor.key),
      ];
      expect(tried.map(({ status }) => status)).to.deep.equal([403, 403]);
      expect(tried.flatMap(({ rows }) => told(rows))).to.deep.equal([
        `denied create token null in null by application ${poor.id}`,
        `denied read token null in null by application ${poor.id}`,
      ]);
    });

    it('says nothing of what is not there, of others, and of keys that nobody has', async () => {
      const count = async (): Promise<number> =>
        (await trailOf(planes.control.pool, tenant_id)).length;
      const id = await token();
      const stranger = await planes.control.addTenant('Stranger');
      const foreign = await planes.application({ permissions: ['token:read'] }, stranger);
      const before = await count();
      expect((await send('GET /tokens/nobody', undefined, poor.key)).status).to.equal(404);
      expect((await send(`GET /tokens/${id}`, undefined, 'key_nobody')).status).to.equal(401);
      expect((await send(`GET /tokens/${id}`, undefined, foreign.key)).status).to.equal(404);
      expect(await count()).to.equal(before);
    });
  });

  describe('through reactors', () => {
    let script: { id: string; key: string };
    before(async () => {
      script = await planes.application({
        permissions: ['token:read', 'token:create', 'token:delete'],
      });
    });

    it('tells of what the caller used, what the code did, and what was made of its result', async () => {
      const [used, asked] = [await token(), await token({ containers: ['/b/'] })];
      const reactor = await planes.script(
        `await req.bt.tokens.retrieve('${asked}');
         await req.bt.tokens.delete('${asked}');
         return { raw: {}, tokenize: { made: { type: 'token', data: 'm', containers: ['/m/'] } } };`,
        { application: { id: script.id } },
      );
      const answer = await send(`POST /reactors/${reactor.id}/react`, {
        args: { value: `{{ ${used} }}` },
      });
      expect(answer.status, answer.text).to.equal(200);
      const made = (answer.body.tokens as { made: { id: string } }).made.id;
      const via = `via reactor ${reactor.id}`;
      expect(told(answer.rows)).to.deep.equal([
        `use token ${used} in /general/high/ ${via} by application ${owner.id}`,
        `read token ${asked} in /b/ ${via} by application ${script.id}`,
        `delete token ${asked} in /b/ ${via} by application ${script.id}`,
        `create token ${made} in /m/ ${via} by application ${script.id}`,
      ]);
    });

    it('tells the same of a run that came later, by the trace of the request', async () => {
      const used = await token();
      const reactor = await planes.script(
        `return { raw: 1, tokenize: { made: { type: 'token', data: 'm' } } };`,
        { application: { id: script.id } },
      );
      const json = { args: { value: `{{ ${used} }}` } };
      const { body, rows } = await send(`POST /reactors/${reactor.id}/react-async`, json);
      expect(rows).to.deep.equal([]);
      const settings = { SALLYPORT_AUDIT: 'strict' };
      const jobs = await startJobRunner(planes, { settings });
      try {
        const request = String(body.asyncReactorRequestId);
        const line = `GET /reactors/${reactor.id}/results/${request}`;
        let result = await send(line);
        while (result.status === 404) result = await send(line);
        expect(result.status, result.text).to.equal(200);
        const made = (result.body.tokens as { made: { id: string } }).made.id;
        const via = `via reactor ${reactor.id}`;
        const all = await trailOf(planes.control.pool, tenant_id);
        const ofRun = all.filter(({ entity_id, via_id }) => via_id !== null && entity_id !== null);
        expect(told(ofRun.slice(-2))).to.have.members([
          `use token ${used} in /general/high/ ${via} by application ${owner.id}`,
          `create token ${made} in /general/high/ ${via} by application ${script.id}`,
        ]);
        expect(new Set(ofRun.slice(-2).map(({ trace_id }) => trace_id)).size).to.equal(1);
      } finally {
        await jobs.stop();
      }
    });

    it('tells who was denied to use what, through which reactor', async () => {
      const id = await token({ containers: ['/secret/'] });
      const reactor = await planes.script('return { raw: 1 };');
      const none = await planes.application({ permissions: ['token:read'] });
      const poor = await planes.application({
        rules: [
          {
            ...{ priority: 1, container: '/a/', transform: 'reveal' },
            permissions: ['token:use'],
          },
        ],
      });
      const line = `POST /reactors/${reactor.id}/react`;
      const json = { args: { value: `{{ ${id} }}` } };
      const via = `via reactor ${reactor.id} by application`;
      expect(told((await send(line, json, poor.key)).rows)).to.deep.equal([
        `denied use token ${id} in /secret/ via reactor ${reactor.id} by application ${poor.id}`,
      ]);
      expect(told((await send(line, json, none.key)).rows)).to.deep.equal([
        `denied use token null in null ${via} ${none.id}`,
      ]);
    });

    it('tells of what the code was denied', async () => {
      const id = await token();
      const weak = await planes.application({ permissions: ['token:create'] });
      const reactor = await planes.script(
        `return { raw: await req.bt.tokens.retrieve('${id}').catch((e) => e.status) };`,
        { application: { id: weak.id } },
      );
      const answer = await send(`POST /reactors/${reactor.id}/react`, { args: {} });
      expect(answer.body.raw).to.equal(403);
      expect(told(answer.rows)).to.deep.equal([
        `denied read token ${id} in null via reactor ${reactor.id} by application ${weak.id}`,
      ]);
    });
  });

  it('holds no value, mask, metadata or name in any of its columns', async () => {
    const number = randomCardNumber();
    const secret = randomUUID();
    const made = await send('POST /tokens', {
      type: 'card',
      data: { number, expiration_month: 12, expiration_year: 2031, cvc: '123' },
      metadata: { note: secret },
      search_indexes: ['{{ data.number }}'],
    });
    expect(made.status, made.text).to.equal(201);
    const id = String(made.body.id);
    await send(`GET /tokens/${id}`);
    await send(`GET /tokens?metadata.note=${secret}`);
    await send('POST /tokens/search', { query: `data:${number}` });
    await send('POST /detokenize', { [secret]: `{{ ${id} }} ${number}` });
    await send(`GET /tokens/${number}%00`);
    const name = `Name ${secret}`;
    const json = { name, type: 'private', permissions: ['token:read'] };
    const { managementKey } = planes.control.tenant;
    expect((await send('POST /applications', json, managementKey)).status).to.equal(201);
    const client = new pg.Client({ connectionString: planes.control.database.connectionString });
    await client.connect();
    const { rows } = await client.query<{ line: string }>(
      `SELECT l::text AS line FROM audit_log l
       UNION ALL SELECT c::text FROM audit_checkpoints c
       UNION ALL SELECT p::text FROM audit_checkpoint_parts p`,
    );
    await client.end();
    const text = rows.map(({ line }) => line).join('\n');
    expect(text).to.include(id);
    for (const value of [number, secret, name, 'note']) {
      expect(text.includes(value), `${value.length} characters`).to.equal(false);
    }
  });
});
