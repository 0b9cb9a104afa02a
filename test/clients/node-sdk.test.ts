/** The unmodified client library @basis-theory/node-sdk, given only our address. */
import { BasisTheory, BasisTheoryClient } from '@basis-theory/node-sdk';
import { expect } from 'chai';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

const NUMBER = '4242424242424242';
const RULE = {
  ...{ description: 'all', priority: 1, container: '/', transform: 'reveal' },
  permissions: ['read', 'create', 'update', 'delete', 'use'].map((what) => `token:${what}`),
};
const NOBODY = '00000000-0000-4000-8000-000000000000';

describe('@basis-theory/node-sdk', () => {
  let sallyport: TestSallyport;
  let manager: BasisTheoryClient;
  let client: BasisTheoryClient;
  let applicationId: string;

  const clientOf = (apiKey = '') =>
    new BasisTheoryClient({ apiKey, environment: sallyport.baseUrl, maxRetries: 0 });

  before(async () => {
    sallyport = await startSallyport({ LOG_LEVEL: 'silent', SANDBOX_HOSTS: '1' });
    manager = clientOf(sallyport.tenant.managementKey);
    const draft = { name: 'All', type: 'private', rules: [RULE] };
    const { id = '', key } = await manager.applications.create(draft);
    applicationId = id;
    client = clientOf(key);
  });
  after(() => sallyport?.stop());

  describe('tokens', () => {
    it('creates, gets, updates and deletes them', async () => {
      const { tokens } = client;
      const data = { number: NUMBER, expiration_month: 12, expiration_year: 2030, cvc: '123' };
      const given = {
        ...{ id: 'a card', type: 'card', metadata: { userId: '9' }, containers: ['/pci/high/'] },
        ...{ mask: { lastFour: '{{ data.number | last4 }}' } },
        ...{ searchIndexes: ['{{ data.number }}'], fingerprintExpression: '{{ data.number }}' },
      };
      const expiresAt = '2035-08-27T02:23:57Z';
      const created = await tokens.create({ ...given, data, deduplicateToken: false, expiresAt });
      expect(created).to.deep.include({ ...given, data: { lastFour: '4242' } });
      expect(created).to.include({ createdBy: applicationId, tenantId: sallyport.tenant.id });
      expect(created.createdAt).to.be.a('date');
      expect((await tokens.get('a card')).data).to.deep.equal(data);
      const updated = await tokens.update('a card', {
        ...{ data: { cvc: null }, metadata: { orderNo: '7' }, containers: ['/moved/'] },
      });
      expect(updated.metadata).to.deep.equal({ userId: '9', orderNo: '7' });
      expect(updated).to.deep.include({ containers: ['/moved/'], modifiedBy: applicationId });
      // The library sends an empty object when it is given nothing.
      expect((await tokens.update('a card')).metadata).to.deep.equal(updated.metadata);
      const { cvc: _cvc, ...kept } = data;
      expect((await tokens.get('a card')).data).to.deep.equal(kept);
      await tokens.delete('a card');
      expect(await failureOf(tokens.get('a card'))).to.be.instanceOf(BasisTheory.NotFoundError);
    });

    it('tokenizes and detokenizes', async () => {
      const made = (await client.tokens.tokenize({ aName: 'Ann', list: ['x'] })) as {
        aName: string;
        list: string[];
      };
      const expressions = { aName: `{{ ${made.aName} }}`, text: `<{{ ${made.list[0]} }}>` };
      const opened = await client.tokens.detokenize(expressions);
      expect(opened).to.deep.equal({ aName: 'Ann', text: '<x>' });
      const alone = await client.tokens.tokenize('just a text');
      expect(await client.tokens.detokenize(`{{ ${alone} }}`)).to.equal('just a text');
    });

    it('has one effect by one idempotency key, and answers by the id it was traced by', async () => {
      const draft = { type: 'token', data: 1 };
      const once = { idempotencyKey: 'once', correlationId: 'mine' };
      const { data, rawResponse } = await client.tokens.create(draft, once).withRawResponse();
      expect(rawResponse.status).to.equal(201);
      expect(rawResponse.headers.get('bt-trace-id')).to.equal('mine');
      expect(await client.tokens.create(draft, once)).to.deep.equal(data);
    });
  });

  it('gets errors of its own classes, with what is wrong', async () => {
    const { tokens } = client;
    await tokens.create({ id: 'taken', type: 'token', data: 1 });
    const invalid = await failureOf(tokens.create({ type: 'card', data: { number: '1' } }));
    expect(invalid).to.be.instanceOf(BasisTheory.BadRequestError);
    expect(invalid.body).to.include({ title: 'One or more validation errors occurred.' });
    expect(invalid.body.errors).to.have.all.keys('data.number');
    const failing: [Class, () => PromiseLike<unknown>][] = [
      [BasisTheory.UnauthorizedError, () => clientOf('key_nobody').tokens.get('taken')],
      [BasisTheory.UnauthorizedError, () => clientOf('key_nobody').applications.list()],
      [BasisTheory.ForbiddenError, () => manager.tokens.get('taken')],
      [BasisTheory.ForbiddenError, () => client.applications.list()],
      [BasisTheory.NotFoundError, () => client.reactors.react(NOBODY, { args: {} })],
      [BasisTheory.NotFoundError, () => manager.applications.get(NOBODY)],
      [BasisTheory.ConflictError, () => tokens.create({ id: 'taken', type: 'token', data: 1 })],
      [BasisTheory.BadRequestError, () => manager.proxies.create({ name: '', destinationUrl: '' })],
    ];
    for (const [type, call] of failing) {
      const failure = await failureOf(call());
      expect(failure).to.be.instanceOf(type);
      expect(failure.body.status).to.equal(failure.statusCode);
    }
  });

  it('manages applications, and pages through them by itself', async () => {
    const { applications } = manager;
    const draft = { name: 'A', type: 'public', permissions: ['token:create'] };
    const made = [await applications.create(draft), await applications.create(draft)];
    const [{ key, ...first }, { id: second }] = made as [BasisTheory.Application, { id: string }];
    const { id = '' } = first;
    expect(await clientOf(key).applications.getByKey()).to.deep.equal(first);
    const updated = await applications.update(id, { ...first, name: 'B' });
    expect(updated).to.include({ name: 'B', type: 'public' });
    expect(await applications.get(id)).to.deep.equal(updated);
    const found: unknown[] = [];
    const pages = await applications.list({ id: [id, second], type: ['public'], size: 1 });
    for await (const application of pages) found.push(application.id);
    expect(found).to.deep.equal([id, second]);
    await applications.delete(id);
    const remaining = await applications.list({ id: [id, second] });
    expect(remaining.data).to.have.length(1);
  });

  it('reads tenant, permissions and logs, and changes the tenant', async () => {
    const settings = { deduplicate_tokens: 'false' };
    const updated = await manager.tenants.self.update({ name: 'Renamed', settings });
    expect(updated).to.deep.include({ id: sallyport.tenant.id, name: 'Renamed', settings });
    expect(await manager.tenants.self.get()).to.deep.equal(updated);
    const permissions = await manager.permissions.list({ applicationType: 'public' });
    expect(permissions.map(({ type }) => type)).to.deep.equal(['token:create', 'token:update']);
    const types = await manager.logs.getEntityTypes();
    expect(types).to.deep.include({ displayName: 'Tenant', value: 'tenant' });
    const about = { entityType: 'tenant', entityId: sallyport.tenant.id };
    const logs = await manager.logs.list({ ...about, startDate: new Date(Date.now() - 60_000) });
    expect(logs.data[0]).to.include({ operation: 'update', message: 'Tenant updated' });
  });

  describe('reactors', () => {
    const code = `module.exports = async ({ args, configuration }) => {
      if (args?.fail) throw new Error('as it was told');
      return { raw: { args, ...configuration } };
    }`;
    const draft = { name: 'R', code, configuration: { aKey: '1', b_key: '2' } };

    it('manages them', async () => {
      const { reactors } = manager;
      const created = await reactors.create({ ...draft, application: { id: applicationId } });
      expect(created).to.deep.include(draft);
      expect(created.application?.id).to.equal(applicationId);
      const { id = '' } = created;
      const configuration = { aKey: '3' };
      await reactors.update(id, { name: 'S', code, configuration });
      await reactors.patch(id, { name: 'T' });
      await reactors.patch(id);
      const { application, ...patched } = await reactors.get(id);
      expect(application).to.equal(undefined);
      expect(patched).to.deep.include({ name: 'T', code, configuration });
      expect((await reactors.list({ id, name: 't*' })).data).to.deep.equal([patched]);
      await reactors.delete(id);
      expect(await failureOf(reactors.get(id))).to.be.instanceOf(BasisTheory.NotFoundError);
    });

    it('reacts, with arguments or without, and learns what the code threw', async () => {
      const { id = '' } = await manager.reactors.create(draft);
      const card = await client.tokens.create({ type: 'card', data: { number: NUMBER } });
      const args = { aNumber: `{{ ${card.id} | json: '$.number' }}` };
      const { raw } = await client.reactors.react(id, { args });
      expect(raw).to.deep.equal({ args: { aNumber: NUMBER }, aKey: '1', b_key: '2' });
      const bare = await client.reactors.react(id);
      expect(bare.raw).to.deep.equal({ args: null, aKey: '1', b_key: '2' });
      const failure = await failureOf(client.reactors.react(id, { args: { fail: true } }));
      expect(failure).to.include({ statusCode: 500 });
      expect(failure.body.errors).to.deep.equal({ error: ['as it was told'] });
    });

    it('reacts later, and gets the result when it is there', async () => {
      const { id = '' } = await manager.reactors.create(draft);
      const { asyncReactorRequestId = '' } = await client.reactors.reactAsync(id, { args: [1] });
      const { results } = client.reactors;
      let result: unknown;
      while (result === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        result = await results.get(id, asyncReactorRequestId).catch((error: unknown) => {
          if (!(error instanceof BasisTheory.NotFoundError)) throw error;
        });
      }
      expect(result).to.deep.equal({ raw: { args: [1], aKey: '1', b_key: '2' } });
    });
  });

  it('manages proxies, and is refused what would be left out of them', async () => {
    const { proxies } = manager;
    const values = {
      ...{ name: 'P', destinationUrl: 'https://bank.example/api', requireAuth: false },
      requestTransform: { code: 'module.exports = async ({ args }) => args;' },
      configuration: { aKey: '1', b_key: '2' },
    };
    const created = await proxies.create({ ...values, application: { id: applicationId } });
    expect(created).to.deep.include({ ...values, applicationId, tenantId: sallyport.tenant.id });
    const { id = '', key } = created;
    const bare = { name: 'Q', destinationUrl: 'https://bank.example' };
    expect(await proxies.update(id, bare)).to.deep.include({ ...bare, key, requireAuth: true });
    await proxies.patch(id, { configuration: { someKey: '3' } });
    await proxies.patch(id);
    const patched = await proxies.get(id);
    expect(patched).to.deep.include({ ...bare, key, configuration: { someKey: '3' } });
    expect((await proxies.list({ id, name: 'q*' })).data).to.deep.equal([patched]);
    await proxies.delete(id);
    expect(await failureOf(proxies.get(id))).to.be.instanceOf(BasisTheory.NotFoundError);
    const requestTransforms = [{ type: 'code', code: values.requestTransform.code }];
    const later = { requestTransforms, disableDetokenization: true };
    const refused = await failureOf(proxies.create({ ...bare, ...later }));
    expect(refused).to.be.instanceOf(BasisTheory.BadRequestError);
    expect(refused.body.errors).to.have.all.keys('request_transforms', 'disable_detokenization');
  });
});

type Class = new (...given: never[]) => Error;

interface ApiFailure extends Error {
  statusCode: number;
  body: { title?: string; status?: number; errors?: Record<string, string[]> };
}

async function failureOf(work: PromiseLike<unknown>): Promise<ApiFailure> {
  try {
    await work;
  } catch (error) {
    return error as ApiFailure;
  }
  throw new Error('the call succeeded');
}
