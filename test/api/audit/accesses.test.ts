import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import pg from 'pg';
import { randomCardNumber } from '../../support/card-numbers.ts';
import { type AccessTrail, startAccessTrail, told } from './access-trail.ts';
import { trailOf } from './trail.ts';

describe('the audit trail of tokens', () => {
  let planes: AccessTrail['planes'];
  let tenant_id: string;
  let owner: AccessTrail['owner'];
  let send: AccessTrail['send'];
  let token: AccessTrail['token'];

  before(async () => {
    ({ planes, tenant_id, owner, send, token } = await startAccessTrail());
  });
  after(() => planes?.stop());

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
