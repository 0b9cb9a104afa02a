/**
 * The unmodified client library @basis-theory/basis-theory-js of the time of the API, 1.79.3: the one with
 * transactions and reactor formulas.
 */
import { expect } from 'chai';
import { startCallbackReceiver } from '../api/reactors/callback-receiver.ts';
import { type Connected, failureOf, startConnected } from './basis-theory-js-1.ts';
import { describeProxies } from './basis-theory-js-1-proxies.ts';

const NUMBER = '4242424242424242';

describe('@basis-theory/basis-theory-js 1.79.3', () => {
  let connected: Connected;
  let sallyport: Connected['sallyport'];
  let manager: Connected['manager'];
  let client: Connected['client'];
  let applicationId: string;

  before(async () => {
    connected = await startConnected();
    ({ sallyport, manager, client, applicationId } = connected);
  });
  after(() => sallyport?.stop());

  describe('tokens', () => {
    it('creates, retrieves, updates, lists, searches and deletes them', async () => {
      const { tokens } = client;
      const data = { number: NUMBER, expiration_month: 12, expiration_year: 2030 };
      const created = await tokens.create({
        ...{ id: 'a card', type: 'card', data, metadata: { userId: '9' } },
        ...{ searchIndexes: ['{{ data.number | last4 }}'], containers: ['/pci/high/'] },
        ...{ fingerprintExpression: '{{ data.number }}', deduplicateToken: false },
        ...{ expiresAt: '8/26/2035 7:23:57 PM -07:00' },
      });
      expect(created).to.deep.include({
        ...{ id: 'a card', tenantId: sallyport.tenant.id, createdBy: applicationId },
        ...{ data: { ...data, number: 'XXXXXXXXXXXX4242' }, metadata: { userId: '9' } },
        ...{ searchIndexes: ['{{ data.number | last4 }}'], containers: ['/pci/high/'] },
        ...{ fingerprintExpression: '{{ data.number }}', expiresAt: '2035-08-27T02:23:57.000Z' },
      });
      expect((await tokens.retrieve('a card')).data).to.deep.equal(data);
      const changes = { data: { expiration_year: 2031 }, metadata: { orderNo: '7' } };
      const updated = await tokens.update('a card', changes);
      expect(updated.metadata).to.deep.equal({ userId: '9', orderNo: '7' });
      const query = { id: ['a card', 'none'], type: 'card' as const, metadata: { userId: '9' } };
      const listed = await tokens.list({ ...query, page: 1, size: 5 });
      expect(listed.pagination).to.deep.equal({
        ...{ totalItems: 1, pageNumber: 1, pageSize: 5, totalPages: 1 },
      });
      expect(listed.data[0]?.data).to.deep.equal({ ...data, expiration_year: 2031 });
      const found = await tokens.search({ query: 'data:4242 AND metadata.orderNo:7', size: 1 });
      expect(found.data).to.deep.equal(listed.data);
      await tokens.delete('a card');
      expect(await failureOf(tokens.retrieve('a card'))).to.include({ status: 404 });
    });

    it('tokenizes several at once, and leaves their names alone', async () => {
      const made = await client.tokenize({ firstName: 'Ann', last_name: 'Lee', ages: [7] });
      const { firstName, last_name, ages } = made as Record<string, string>;
      expect((await client.tokens.retrieve(firstName ?? '')).data).to.equal('Ann');
      expect((await client.tokens.retrieve(last_name ?? '')).data).to.equal('Lee');
      expect((await client.tokens.retrieve(ages?.[0] ?? '')).data).to.equal(7);
    });

    it('has one effect by one idempotency key', async () => {
      const draft = { type: 'token' as const, data: 'once' };
      const { id } = await client.tokens.create(draft, { idempotencyKey: 'create' });
      const again = await client.tokens.create(draft, { idempotencyKey: 'create' });
      expect(again.id).to.equal(id);
      await client.tokens.update(id, { data: 'first' }, { idempotencyKey: 'update' });
      await client.tokens.update(id, { data: 'second' }, { idempotencyKey: 'update' });
      expect((await client.tokens.retrieve(id)).data).to.equal('first');
    });

    it('learns what is wrong', async () => {
      const { tokens } = client;
      const invalid = await failureOf(tokens.create({ type: 'card', data: { number: '1' } }));
      expect(invalid).to.include({ name: 'BasisTheoryApiError', status: 400 });
      expect(invalid.data).to.include({ title: 'One or more validation errors occurred.' });
      // The library converts paths, too.
      expect(invalid.data.errors).to.have.all.keys('dataNumber');
      await tokens.create({ id: 'taken', type: 'token', data: 1 });
      const taken = tokens.create({ id: 'taken', type: 'token', data: 1 });
      expect(await failureOf(taken)).to.include({ status: 409 });
      const stranger = failureOf(tokens.retrieve('taken', { apiKey: 'key_nobody' }));
      expect(await stranger).to.include({ status: 401 });
      const forbidden = await failureOf(manager.tokens.retrieve('taken'));
      expect(forbidden).to.include({ status: 403 });
      expect(forbidden.data).to.include({ title: 'Forbidden', status: 403 });
    });
  });

  describe('transactions', () => {
    it('creates, updates, deletes and tokenizes when committed', async () => {
      const { tokens, transactions } = client;
      const before = await tokens.create({ type: 'token', data: 'before' });
      const { id: transactionId, createdBy, ...times } = await transactions.create();
      expect(createdBy).to.equal(applicationId);
      expect(Date.parse(times.expiresAt ?? '') - Date.parse(times.createdAt ?? '')).to.equal(36e5);
      const { id } = await tokens.create({ type: 'token', data: 1 }, { transactionId });
      await tokens.update(id, { data: 2 }, { transactionId });
      const made = (await client.tokenize(['x'], { transactionId })) as string[];
      await tokens.delete(before.id, { transactionId });
      expect(await failureOf(tokens.retrieve(id))).to.include({ status: 404 });
      expect((await tokens.retrieve(before.id)).data).to.equal('before');
      await transactions.commit(transactionId);
      expect((await tokens.retrieve(id)).data).to.equal(2);
      expect((await tokens.retrieve(made[0] ?? '')).data).to.equal('x');
      expect(await failureOf(tokens.retrieve(before.id))).to.include({ status: 404 });
      expect(await failureOf(transactions.commit(transactionId))).to.include({ status: 409 });
    });

    it('does nothing when rolled back, nor in one that is not there', async () => {
      const { tokens, transactions } = client;
      const { id: transactionId } = await transactions.create();
      const { id } = await tokens.create({ type: 'token', data: 1 }, { transactionId });
      await transactions.rollback(transactionId);
      expect(await failureOf(tokens.retrieve(id))).to.include({ status: 404 });
      const none = { transactionId: applicationId };
      const failed = failureOf(tokens.create({ type: 'token', data: 1 }, none));
      expect(await failed).to.include({ status: 404 });
    });
  });

  it('manages applications', async () => {
    const { applications } = manager;
    const draft = { name: 'A', type: 'public' as const, permissions: ['token:create' as const] };
    const { key, ...created } = await applications.create(draft);
    expect(await (await connected.clientOf(key)).applications.retrieveByKey()).to.deep.equal(
      created,
    );
    const renamed = await applications.update(created.id, { ...created, name: 'B' });
    expect((await applications.list({ id: created.id })).data).to.deep.equal([renamed]);
    const regenerated = await connected.clientOf(
      (await applications.regenerateKey(created.id)).key,
    );
    expect((await regenerated.applications.retrieveByKey()).name).to.equal('B');
    await applications.delete(created.id);
    expect(await failureOf(applications.retrieve(created.id))).to.include({ status: 404 });
  });

  it('reads tenant, permissions and logs, and changes the tenant', async () => {
    const settings = { deduplicateTokens: 'false' };
    const updated = await manager.tenants.update({ name: 'Renamed', settings });
    expect(updated).to.deep.include({ id: sallyport.tenant.id, name: 'Renamed', settings });
    expect(await manager.tenants.retrieve()).to.deep.equal(updated);
    expect((await manager.permissions.list()).map(({ type }) => type)).to.include('token:use');
    const about = { entityType: 'tenant' as const, entityId: sallyport.tenant.id, size: 1 };
    const { data } = await manager.logs.list({
      ...about,
      startDate: new Date(Date.now() - 6e4).toISOString(),
    });
    expect(data[0]).to.include({ operation: 'update', message: 'Tenant updated' });
  });

  describe('reactors', () => {
    const formula = {
      ...{ type: 'private' as const, name: 'Pay', description: 'Charges' },
      code: `module.exports = async ({ args, configuration }) => {
        if (args.amount < 0) throw new Error('below nothing');
        return { raw: { ...args, ...configuration }, tokenize: { the_receipt: 'r1' } };
      }`,
      configuration: [{ name: 'PSP_key', description: 'of the PSP', type: 'string' as const }],
      requestParameters: [
        { name: 'card.number', type: 'string' as const, optional: false },
        { name: 'amount', type: 'number' as const, optional: true },
      ],
    };
    const args = { card: { number: NUMBER } };

    it('manages formulas and reactors', async () => {
      const { reactorFormulas, reactors } = manager;
      const made = await reactorFormulas.create(formula);
      expect(made).to.deep.include(formula);
      const renamed = await reactorFormulas.update(made.id, { ...made, name: 'Paying' });
      expect(await reactorFormulas.retrieve(made.id)).to.deep.equal(renamed);
      expect((await reactorFormulas.list({ name: 'payi*' })).data).to.deep.equal([renamed]);
      const application = { id: applicationId };
      const draft = { name: 'R', formula: renamed, configuration: { PSP_key: '1' }, application };
      const reactor = await reactors.create(draft);
      expect(reactor).to.deep.include({ formula: renamed, configuration: { PSP_key: '1' } });
      expect(reactor.application?.id).to.equal(applicationId);
      const updated = await reactors.update(reactor.id, { ...reactor, name: 'S' });
      await reactors.patch(reactor.id, { configuration: { PSP_key: '2' } });
      const patched = await reactors.retrieve(reactor.id);
      expect(patched).to.deep.include({ name: 'S', configuration: { PSP_key: '2' } });
      expect(patched.application).to.deep.equal(updated.application);
      expect((await reactors.list({ id: reactor.id, name: 's' })).data).to.deep.equal([patched]);
      expect(await failureOf(reactorFormulas.delete(made.id))).to.include({ status: 409 });
      await reactors.delete(reactor.id);
      await reactorFormulas.delete(made.id);
      expect(await failureOf(reactors.retrieve(reactor.id))).to.include({ status: 404 });
    });

    async function reactorId(): Promise<string> {
      const made = await manager.reactorFormulas.create(formula);
      const draft = { name: 'R', formula: made, configuration: { PSP_key: '1' } };
      return (await manager.reactors.create(draft)).id;
    }

    it('reacts, and learns why it cannot', async () => {
      const run = client.reactors.react.bind(client.reactors, await reactorId());
      const card = await client.tokens.create({ type: 'card', data: { number: NUMBER } });
      const given = { card: `{{ ${card.id} }}`, amount: '12.5' };
      const { raw, tokens } = await run({ args: given });
      expect(raw).to.deep.equal({ ...args, amount: 12.5, PSP_key: '1' });
      expect(tokens).to.have.all.keys('the_receipt');
      const invalid = await failureOf(run({ args: { amount: 'x' } }));
      expect(invalid).to.include({ status: 400 });
      expect(invalid.data.errors).to.have.all.keys('args.card.number', 'args.amount');
      const thrown = await failureOf(run({ args: { ...args, amount: -1 } }));
      expect(thrown).to.include({ status: 500 });
      expect(thrown.data.errors).to.deep.equal({ error: ['below nothing'] });
    });

    it('reacts later, and its answer comes to the callback', async () => {
      const receiver = await startCallbackReceiver();
      try {
        const request = { args, callbackUrl: receiver.url, timeoutMs: 20_000 };
        expect(await client.reactors.react(await reactorId(), request)).to.deep.equal({});
        const { raw: later } = (await receiver.callback(0)).body;
        expect(later).to.deep.equal({ ...args, PSP_key: '1' });
      } finally {
        await receiver.close();
      }
    });
  });

  describeProxies(() => connected);
});
