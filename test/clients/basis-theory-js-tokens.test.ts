/**
 * The unmodified client library @basis-theory/basis-theory-js against both planes as processes, given
 * only the public address: tokens, and what the data plane relays to the control plane.
 */
import { BasisTheory } from '@basis-theory/basis-theory-js';
import { expect } from 'chai';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

const NUMBER = '4242424242424242';
const PERMISSIONS = ['token:create', 'token:read', 'token:update', 'token:delete'];

describe('@basis-theory/basis-theory-js through the data plane', () => {
  let sallyport: TestSallyport;
  let client: Awaited<ReturnType<typeof clientOf>>;

  const clientOf = (key: string) =>
    new BasisTheory().init(key, { apiBaseUrl: sallyport.baseUrl, disableTelemetry: true });

  async function keyOf(grants: object, type: 'private' | 'public' = 'private'): Promise<string> {
    const { applications } = await clientOf(sallyport.tenant.managementKey);
    const { key } = await applications.create({ name: 'Tokens', type, ...grants });
    return key ?? '';
  }
  const reveal = (container: string) => ({
    rules: [
      {
        ...{ description: 'all', priority: 1, container, transform: 'reveal' as const },
        permissions: PERMISSIONS,
      },
    ],
  });

  before(async () => {
    sallyport = await startSallyport();
    client = await clientOf(await keyOf(reveal('/')));
  });
  after(() => sallyport.stop());

  describe('tokens', () => {
    it('creates a card and retrieves it in clear', async () => {
      const data = { number: NUMBER, expiration_month: 12, expiration_year: 2030, cvc: '123' };
      const created = await client.tokens.create({ type: 'card', data });
      expect(created).to.deep.include({
        type: 'card',
        tenantId: sallyport.tenant.id,
        containers: ['/pci/high/'],
        searchIndexes: [],
        fingerprintExpression: '{{ data.number }}',
        data: { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 },
      });
      const retrieved = await client.tokens.retrieve(created.id);
      expect(retrieved.data).to.deep.equal(data);
    });

    it('sends everything a token may have, and leaves keys of data and metadata alone', async () => {
      const data = { userName: 'Ann', user_name: 'Bob', deep: { aB: 1 } };
      const created = await client.tokens.create({
        ...{ id: 'id with space', type: 'token', data },
        metadata: { userId: '9', user_id: '10' },
        containers: ['/Vendors/'],
        searchIndexes: ['{{ data.userName }}'],
        fingerprintExpression: '{{ data.userName }}',
        deduplicateToken: false,
        expiresAt: '8/26/2035 7:23:57 PM -07:00',
      });
      expect(created).to.deep.include({
        id: 'id with space',
        metadata: { userId: '9', user_id: '10' },
        containers: ['/vendors/'],
        searchIndexes: ['{{ data.userName }}'],
        fingerprintExpression: '{{ data.userName }}',
        expiresAt: '2035-08-27T02:23:57.000Z',
      });
      expect((await client.tokens.retrieve('id with space')).data).to.deep.equal(data);
    });

    it('has its masks sent in snake case', async () => {
      const mask = { lastFour: '{{ data.secret | last4 }}' };
      const key = await keyOf({ permissions: ['token:create', 'token:read'] });
      const { tokens } = await clientOf(key);
      const created = await tokens.create({ type: 'token', data: { secret: 'abcdefgh' }, mask });
      expect((await tokens.retrieve(created.id)).data).to.deep.equal({ last_four: 'efgh' });
    });

    it('updates by merge patch', async () => {
      const { id } = await client.tokens.create({
        ...{ type: 'card', data: { number: NUMBER }, metadata: { keep: 'yes', drop: 'no' } },
      });
      const updated = await client.tokens.update(id, {
        data: { number: '5555555555554444' },
        metadata: { drop: null as unknown as string, add: 'it' },
        containers: ['/moved/'],
      });
      expect(updated).to.deep.include({ id, containers: ['/moved/'] });
      expect(updated.metadata).to.deep.equal({ keep: 'yes', add: 'it' });
      expect(updated.modifiedBy).to.equal(updated.createdBy);
      expect((await client.tokens.retrieve(id)).data).to.deep.equal({ number: '5555555555554444' });
    });

    it('lists by id, type and metadata, in pages', async () => {
      const ids: string[] = [];
      for (const n of ['1', '2', '3']) {
        const metadata = { userId: '900', n };
        ids.push((await client.tokens.create({ type: 'token', data: n, metadata })).id);
      }
      const [first = '', second = '', third = ''] = ids;
      const byId = await client.tokens.list({ id: [third, first] });
      expect(byId.data.map(({ id }) => id)).to.deep.equal([third, first]);
      const byUser = await client.tokens.list({ metadata: { userId: '900' }, size: 2 });
      expect(byUser.pagination).to.deep.equal({
        ...{ totalItems: 3, pageNumber: 1, pageSize: 2, totalPages: 2 },
      });
      const narrowed = await client.tokens.list({
        type: 'token',
        metadata: { userId: '900', n: '2' },
      });
      expect(narrowed.data.map(({ id, data }) => [id, data])).to.deep.equal([[second, '2']]);
      const past = await client.tokens.list({ metadata: { userId: '900' }, page: 9 });
      expect(past.data).to.deep.equal([]);
    });

    it('deletes, and then finds nothing', async () => {
      const { id } = await client.tokens.create({ type: 'token', data: 'x' });
      await client.tokens.delete(id);
      const failure = await failureOf(client.tokens.retrieve(id));
      expect(failure).to.include({ name: 'BasisTheoryApiError', status: 404 });
      expect((await failureOf(client.tokens.delete(id))).status).to.equal(404);
    });

    it('gets errors with their members in camel case', async () => {
      const refused = await failureOf(
        client.tokens.create({ type: 'card', data: { number: '4242' }, searchIndexes: ['{{ x'] }),
      );
      expect(refused.status).to.equal(400);
      expect(refused.data.title).to.equal('One or more validation errors occurred.');
      expect(Object.keys(refused.data.errors ?? {})).to.have.length.greaterThan(0);
      const request = { id: 'taken-id', type: 'token' as const, data: 1 };
      await client.tokens.create(request);
      expect((await failureOf(client.tokens.create(request))).status).to.equal(409);
      const stranger = await clientOf('key_nobody');
      expect((await failureOf(stranger.tokens.list())).status).to.equal(401);
    });

    it('of a public key creates but does not read', async () => {
      const key = await keyOf({ permissions: ['token:create', 'token:update'] }, 'public');
      const { tokens } = await clientOf(key);
      const { id } = await tokens.create({ type: 'card', data: { number: NUMBER } });
      const failure = await failureOf(tokens.retrieve(id));
      expect(failure).to.include({ status: 403 });
      expect(failure.data).to.deep.include({ title: 'Forbidden', status: 403 });
    });

    it('passes keys, trace ids and idempotency keys of single requests', async () => {
      const key = await keyOf(reveal('/'));
      const stranger = await clientOf('key_nobody');
      const options = { apiKey: key, correlationId: 'trace-of-mine', idempotencyKey: 'once' };
      const { id } = await stranger.tokens.create({ type: 'token', data: 7 }, options);
      expect((await stranger.tokens.retrieve(id, { apiKey: key })).data).to.equal(7);
    });
  });

  describe('what is relayed', () => {
    it('manages applications', async () => {
      const { applications } = await clientOf(sallyport.tenant.managementKey);
      const created = await applications.create({
        ...{ name: 'Relayed', type: 'private', permissions: ['token:create'] },
      });
      expect((await applications.retrieve(created.id)).name).to.equal('Relayed');
      const updated = await applications.update(created.id, {
        ...{ name: 'Renamed', permissions: ['token:read'] },
      });
      expect(updated.permissions).to.deep.equal(['token:read']);
      expect((await applications.list({ id: [created.id] })).data).to.deep.equal([updated]);
      const regenerated = await applications.regenerateKey(created.id);
      const own = await clientOf(regenerated.key ?? '');
      expect((await own.applications.retrieveByKey()).id).to.equal(created.id);
      await applications.delete(created.id);
      expect((await failureOf(own.tokens.list())).status).to.equal(401);
      expect((await failureOf(applications.retrieve(created.id))).status).to.equal(404);
    });

    it('retrieves and updates the tenant, and tokens obey at once', async () => {
      const { tenants } = await clientOf(sallyport.tenant.managementKey);
      const { name } = await tenants.retrieve();
      const tokens = async () => [
        (await client.tokens.create({ type: 'token', data: 'same' })).id,
        (await client.tokens.create({ type: 'token', data: 'same' })).id,
      ];
      const settings = { deduplicate_tokens: 'true' };
      expect((await tenants.update({ name, settings })).name).to.equal(name);
      const [first, second] = await tokens();
      expect(second).to.equal(first);
      await tenants.update({ name, settings: { deduplicate_tokens: 'false' } });
      const [third, fourth] = await tokens();
      expect(new Set([first, third, fourth]).size).to.equal(3);
    });

    it('lists permissions', async () => {
      const { permissions } = await clientOf(sallyport.tenant.managementKey);
      expect(await permissions.list()).to.have.length(30);
      const publicOnes = await permissions.list({ applicationType: 'public' });
      expect(publicOnes.map(({ type }) => type)).to.deep.equal(['token:create', 'token:update']);
    });
  });
});

interface ApiFailure extends Error {
  status: number;
  data: { title?: string; errors?: Record<string, string[]> };
}

async function failureOf(work: Promise<unknown>): Promise<ApiFailure> {
  try {
    await work;
  } catch (error) {
    return error as ApiFailure;
  }
  throw new Error('the call succeeded');
}
