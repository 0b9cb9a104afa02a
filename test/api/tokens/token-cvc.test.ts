import { expect } from 'chai';
import type { JsonObject } from '../../support/http-call.ts';
import type { TokenClient } from './token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const CARD = { number: NUMBER, expiration_month: 7, expiration_year: 2031 };
const MINUTE_S = 60;

describe('the cvc of a card', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const create = async (cvc: unknown, over: JsonObject = {}): Promise<string> =>
    (await tokens.created({ type: 'card', data: { ...CARD, cvc }, ...over })).id;
  /** What a revealed read shows as cvc at this many minutes from now. */
  async function cvcAt(id: string, minutes: number): Promise<unknown> {
    const client = await vault.later(minutes * MINUTE_S);
    const { status, body } = await client.read(id);
    expect(status).to.equal(200);
    expect(body.data).to.deep.include(CARD);
    return (body.data as JsonObject).cvc;
  }
  async function storedCvcs(id: string): Promise<number> {
    const statement = 'SELECT 1 FROM token_cvcs WHERE token_id = $1';
    return (await vault.control.pool.query(statement, [id])).rows.length;
  }

  it('is in a revealed read within its hour, and gone behind it', async () => {
    const id = await create('737');
    expect(await cvcAt(id, 0)).to.equal('737');
    expect(await cvcAt(id, 59)).to.equal('737');
    expect(await cvcAt(id, 60.05)).to.equal(undefined);
    expect(await cvcAt(id, 24 * 60)).to.equal(undefined);
  });

  it('is in no other answer', async () => {
    const [mask, redact] = await Promise.all(
      (['mask', 'redact'] as const).map((transform) =>
        vault.clientWith({ rules: REVEAL_ALL.map((rule) => ({ ...rule, transform })) }),
      ),
    );
    const created = await tokens.create({ type: 'card', data: { ...CARD, cvc: '7397' } });
    const { id } = created.body;
    const texts = [
      created.text,
      (await tokens.patch(id, { metadata: { a: 'b' } })).text,
      (await tokens.patch(id, { data: { cvc: '7397' } })).text,
      (await tokens.list(`?id=${id}`)).text,
      (await mask?.read(id))?.text,
      (await redact?.read(id))?.text,
      (await mask?.list())?.text,
      (await tokens.create({ id, type: 'card', data: { ...CARD, cvc: '7397' } })).text,
      (await tokens.patch(id, { data: { number: 'x', cvc: '7397' } })).text,
      (await tokens.create({ type: 'card', data: { ...CARD, cvc: '73977397' } })).text,
    ];
    for (const text of texts) {
      expect(text?.replaceAll(/"(id|tenant_id|created_by|modified_by)":"[^"]*"/g, '')).to.be.a(
        'string',
      );
      expect(text)
        .not.to.contain('"cvc":"')
        .and.not.match(/"7397"/);
    }
    expect((await tokens.read(id)).text).to.contain('"cvc":"7397"');
  });

  it('is not in the answer to a request that finds a duplicate', async () => {
    const number = '5555555555554444';
    const request = { type: 'card', data: { number, cvc: '739' }, deduplicate_token: true };
    const first = await tokens.created(request);
    const second = await tokens.create({ ...request, data: { number, cvc: '111' } });
    expect(second.body.id).to.equal(first.id);
    expect(second.text).not.to.contain('739"').and.not.contain('111"').and.not.contain('cvc');
    expect((await tokens.read(first.id)).body.data).to.deep.equal({ number, cvc: '739' });
  });

  it('that is patched in counts an hour of its own, and replaces the old one at once', async () => {
    const id = await create('111');
    const at50 = await vault.later(50 * MINUTE_S);
    expect((await at50.patch(id, { data: { cvc: '222' } })).status).to.equal(200);
    expect(await cvcAt(id, 50)).to.equal('222');
    expect(await cvcAt(id, 109)).to.equal('222');
    expect(await cvcAt(id, 111)).to.equal(undefined);
    expect(await storedCvcs(id)).to.equal(1);
  });

  it('can be patched in when the card had none', async () => {
    const id = await create(undefined);
    expect(await cvcAt(id, 0)).to.equal(undefined);
    await tokens.patch(id, { data: { cvc: 456 } });
    expect(await cvcAt(id, 0)).to.equal('456');
  });

  it('is removed by null, at once', async () => {
    const id = await create('333');
    expect((await tokens.patch(id, { data: { cvc: null } })).status).to.equal(200);
    expect(await cvcAt(id, 0)).to.equal(undefined);
    expect(await storedCvcs(id)).to.equal(0);
  });

  it('stays, with its hour, when something else is patched', async () => {
    const id = await create('444');
    const at50 = await vault.later(50 * MINUTE_S);
    expect(
      (await at50.patch(id, { containers: ['/moved/'], metadata: { a: 'b' } })).status,
    ).to.equal(200);
    expect((await at50.patch(id, { data: { expiration_month: 7 } })).status).to.equal(200);
    expect(await cvcAt(id, 59)).to.equal('444');
    expect(await cvcAt(id, 61)).to.equal(undefined);
  });

  it('is not changed by a patch that is refused', async () => {
    const id = await create('555');
    for (const cvc of ['12', 'abc', 99999, [1]]) {
      expect((await tokens.patch(id, { data: { cvc } })).status).to.equal(400);
    }
    expect(await cvcAt(id, 0)).to.equal('555');
  });

  it('goes with its token', async () => {
    const id = await create('666', { id: 'card-with-cvc' });
    await tokens.remove(id);
    expect(await storedCvcs(id)).to.equal(0);
    await create(undefined, { id: 'card-with-cvc' });
    expect(await cvcAt(id, 0)).to.equal(undefined);
  });

  it('does not pass on to the next token of an expired id', async () => {
    const expires_at = new Date(Date.now() + 10 * MINUTE_S * 1_000).toISOString();
    const id = await create('888', { id: 'expiring-card', expires_at });
    const at20 = await vault.later(20 * MINUTE_S);
    expect((await at20.create({ id, type: 'card', data: CARD })).status).to.equal(201);
    expect(await cvcAt(id, 20)).to.equal(undefined);
    expect(await cvcAt(id, 0)).to.equal(undefined);
  });

  it('lives apart from the token, in a table without a log', async () => {
    await create('999');
    const { rows } = await vault.control.pool.query<{ relpersistence: string }>(
      `SELECT relpersistence FROM pg_class WHERE relname = 'token_cvcs'`,
    );
    expect(rows).to.deep.equal([{ relpersistence: 'u' }]);
  });
});
