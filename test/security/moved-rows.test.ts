/** Whoever can write to the database moves and re-labels sealed rows: none of them opens. */
import { expect } from 'chai';
import { randomCardNumber } from '../support/card-numbers.ts';
import type { TestTenant } from '../support/control-plane.ts';
import { call, type JsonObject } from '../support/http-call.ts';
import {
  counterOf,
  createApplication,
  startTestPlanes,
  type TestApplication,
  type TestPlanes,
} from './planes.ts';

const BROKEN = 'sallyport_seals_broken_total';

/** A stored card with what it holds. */
interface StoredCard {
  readonly id: string;
  readonly number: string;
  readonly tenant: TestTenant;
  readonly key: string;
}

describe('sealed rows that were moved or changed by SQL', () => {
  let planes: TestPlanes;
  let url: string;
  let acme: TestTenant;
  let globex: TestTenant;
  let ofAcme: TestApplication;
  let ofGlobex: TestApplication;

  before(async () => {
    planes = await startTestPlanes();
    url = planes.urls[0] ?? '';
    acme = await planes.addTenant('Acme');
    globex = await planes.addTenant('Globex');
    ofAcme = await createApplication(url, acme);
    ofGlobex = await createApplication(url, globex);
  });
  after(() => planes.stop());

  async function store(
    over: JsonObject = {},
    [tenant, { key }]: [TestTenant, TestApplication] = [acme, ofAcme],
  ): Promise<StoredCard> {
    const number = randomCardNumber();
    const json = { type: 'card', data: { number, cvc: '847' }, ...over };
    const { status, body } = await call<{ id: string }>(url, 'POST /tokens', { key, json });
    expect(status).to.equal(201);
    return { id: body.id, number, tenant, key };
  }

  const read = ({ id, key }: StoredCard, id2 = id) => call(url, `GET /tokens/${id2}`, { key });

  /** The card's row is refused without a word of any card, the alarm rises, others are served. */
  async function expectBroken(card: StoredCard, id = card.id): Promise<void> {
    const before = await counterOf(planes, BROKEN);
    const good = await Promise.all(Array.from({ length: 4 }, () => store()));
    const [answer, ...neighbours] = await Promise.all([
      read(card, id),
      ...good.map((one) => read(one)),
    ]);
    expect(answer.status).to.equal(500);
    expect(answer.body).to.have.all.keys('title', 'status', 'detail');
    expect(answer.text).not.to.match(/\d{12}|847/);
    for (const [index, neighbour] of neighbours.entries()) {
      expect(neighbour.status).to.equal(200);
      expect(neighbour.text).to.contain(`"number":"${good[index]?.number}"`);
    }
    expect(await counterOf(planes, BROKEN)).to.be.greaterThan(before);
  }

  async function change(card: StoredCard, assignment: string, ...values: unknown[]): Promise<void> {
    const { rowCount } = await planes.admin.query(
      `UPDATE tokens SET ${assignment} WHERE tenant_id = $1 AND id = $2`,
      [card.tenant.id, card.id, ...values],
    );
    expect(rowCount).to.equal(1);
  }

  async function swapSealed(one: StoredCard, other: StoredCard): Promise<void> {
    const pair = [one.tenant.id, one.id, other.tenant.id, other.id];
    const { rowCount } = await planes.admin.query(
      `UPDATE tokens t SET sealed = o.sealed FROM tokens o
       WHERE (t.tenant_id, t.id, o.tenant_id, o.id)
          IN (($1::uuid, $2, $3::uuid, $4), ($3::uuid, $4, $1::uuid, $2))`,
      pair,
    );
    expect(rowCount).to.equal(2);
  }

  it('does not open a payload swapped between two ids of one tenant', async () => {
    const [one, other] = [await store(), await store()];
    await swapSealed(one, other);
    await expectBroken(one);
    await expectBroken(other);
  });

  it('does not open a payload swapped between two tenants, also under the same id', async () => {
    const one = await store({ id: 'the-same-id' });
    const other = await store({ id: 'the-same-id' }, [globex, ofGlobex]);
    await swapSealed(one, other);
    await expectBroken(one);
    await expectBroken(other);
  });

  it('does not open a whole row moved to another tenant', async () => {
    const card = await store();
    await change(card, 'tenant_id = $3', globex.id);
    await planes.admin.query(
      'UPDATE token_cvcs SET tenant_id = $3 WHERE tenant_id = $1 AND token_id = $2',
      [acme.id, card.id, globex.id],
    );
    expect((await read(card)).status).to.equal(404);
    await expectBroken({ ...card, tenant: globex, key: ofGlobex.key });
  });

  it('does not open a row under another id', async () => {
    const card = await store();
    await change(card, `id = 'renamed-by-sql'`);
    await expectBroken(card, 'renamed-by-sql');
  });

  const labels: [string, string][] = [
    ['a container its readers may see', `container = '/general/low/'`],
    ['a type that shows more', `type = 'token'`],
    ['a later expiry', `expires_at = expires_at + interval '1 year'`],
    ['no expiry at all', 'expires_at = NULL'],
    [
      'the key version of another key',
      `sealed = overlay(sealed PLACING '\\x00000007'::bytea FROM 2)`,
    ],
    ['another format', `sealed = overlay(sealed PLACING '\\x02'::bytea FROM 1)`],
    [
      'one changed bit',
      'sealed = set_bit(sealed, octet_length(sealed) * 8 - 1, 1 - get_bit(sealed, octet_length(sealed) * 8 - 1))',
    ],
    ['its last byte cut off', 'sealed = substring(sealed FOR octet_length(sealed) - 1)'],
    ['no bytes at all', `sealed = ''`],
  ];
  for (const [what, assignment] of labels) {
    it(`does not open a row that was given ${what}`, async () => {
      const card = await store({ expires_at: '2099-01-01T00:00:00Z' });
      await change(card, assignment);
      await expectBroken(card);
    });
  }

  it('does not serve an expired token whose expiry was moved into the future', async () => {
    const card = await store({ expires_at: '2099-01-01T00:00:00Z' });
    await change(card, `expires_at = now() - interval '1 second'`);
    expect((await read(card)).status).to.equal(404);
    await change(card, `expires_at = now() + interval '1 hour'`);
    await expectBroken(card);
  });

  it('does not open a cvc that was moved to another card, or whose hour was extended', async () => {
    const [one, other] = [await store(), await store()];
    await planes.admin.query(
      `UPDATE token_cvcs c SET sealed = o.sealed, due_at = o.due_at FROM token_cvcs o
       WHERE c.tenant_id = $1 AND c.token_id = $2 AND o.tenant_id = $1 AND o.token_id = $3`,
      [acme.id, one.id, other.id],
    );
    await expectBroken(one);
    await planes.admin.query(
      `UPDATE token_cvcs SET due_at = due_at + interval '1 hour' WHERE token_id = $1`,
      [other.id],
    );
    await expectBroken(other);
  });

  it('serves a moved card under a mask neither, and refuses to update it', async () => {
    const [one, other] = [await store(), await store()];
    await swapSealed(one, other);
    const masking = await createApplication(url, acme, { permissions: ['token:read'] });
    expect((await read({ ...one, key: masking.key })).status).to.equal(500);
    const patched = await call(url, `PATCH /tokens/${one.id}`, {
      key: one.key,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: '{"data":{"expiration_month":1}}',
    });
    expect(patched.status).to.equal(500);
    expect(patched.text).not.to.match(/\d{12}/);
    await swapSealed(one, other);
    const { text } = await read(one);
    expect(text).to.contain(one.number).and.not.contain('modified_at');
  });

  it('lists no page that holds a moved row, and shows nothing of it', async () => {
    const tenant = await planes.addTenant('Initech');
    const application = await createApplication(url, tenant);
    const own: [TestTenant, TestApplication] = [tenant, application];
    const [one, other] = [await store({}, own), await store({}, own)];
    await swapSealed(one, other);
    const answer = await call(url, 'GET /tokens', { key: application.key });
    expect(answer.status).to.equal(500);
    expect(answer.text).not.to.match(/\d{12}/);
  });

  it('serves no tenant whose keys were replaced by those of another', async () => {
    const tenant = await planes.addTenant('Hooli');
    const application = await createApplication(url, tenant);
    const [card, other] = [await store({}, [tenant, application]), await store()];
    await planes.admin.query(
      `UPDATE tenant_keys k SET wrapped = o.wrapped FROM tenant_keys o
       WHERE k.tenant_id = $1 AND o.tenant_id = $2 AND o.purpose = k.purpose`,
      [tenant.id, acme.id],
    );
    const fresh = await planes.addDataPlane();
    const answer = await call(fresh, `GET /tokens/${card.id}`, { key: application.key });
    expect(answer.status).to.equal(500);
    expect(answer.text).not.to.contain(card.number);
    expect((await call(fresh, `GET /tokens/${other.id}`, { key: other.key })).status).to.equal(200);
  });
});
