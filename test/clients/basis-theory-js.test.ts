/** The unmodified client library @basis-theory/basis-theory-js, given only our address. */
import { BasisTheory } from '@basis-theory/basis-theory-js';
import { expect } from 'chai';
import { startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';

describe('@basis-theory/basis-theory-js', () => {
  let server: TestControlPlane;
  let baseUrl: string;

  before(async () => {
    server = await startTestControlPlane();
    baseUrl = server.baseUrl;
  });
  after(() => server.stop());

  const clientOf = (key: string) =>
    new BasisTheory().init(key, { apiBaseUrl: baseUrl, disableTelemetry: true });
  const manager = () => clientOf(server.tenant.managementKey);

  describe('applications', () => {
    it('creates, retrieves, updates, lists and deletes', async () => {
      const { applications } = await manager();
      const created = await applications.create({
        name: 'Checkout',
        type: 'private',
        permissions: ['token:create'],
        rules: [
          {
            description: 'cards',
            priority: 1,
            container: '/pci/',
            transform: 'mask',
            permissions: ['token:read'],
          },
        ],
      });
      expect(created.key).to.match(/^key_/);
      expect(created.tenantId).to.equal(server.tenant.id);
      expect(created.rules).to.have.length(1);

      const { key: _shownOnce, ...shown } = created;
      expect(await applications.retrieve(created.id)).to.deep.equal(shown);

      const updated = await applications.update(created.id, {
        name: 'Renamed',
        permissions: ['token:read'],
      });
      expect(updated).to.include({ id: created.id, name: 'Renamed', type: 'private' });
      expect(updated.modifiedBy).to.equal(server.tenant.managementApplicationId);

      const listed = await applications.list({ id: [created.id], page: 1, size: 5 });
      expect(listed.pagination).to.deep.equal({
        totalItems: 1,
        pageNumber: 1,
        pageSize: 5,
        totalPages: 1,
      });
      expect(listed.data).to.deep.equal([updated]);

      await applications.delete(created.id);
      const gone = await failureOf(applications.retrieve(created.id));
      expect(gone).to.include({ name: 'BasisTheoryApiError', status: 404 });
    });

    it('finds its application by key and regenerates the key', async () => {
      const { applications } = await manager();
      const created = await applications.create({
        name: 'Rotating',
        type: 'public',
        permissions: ['token:create'],
      });
      const own = await clientOf(created.key ?? '');
      expect((await own.applications.retrieveByKey()).id).to.equal(created.id);
      const regenerated = await applications.regenerateKey(created.id);
      expect(regenerated.key).to.match(/^key_/).and.not.equal(created.key);
      const refused = await failureOf(own.applications.retrieveByKey());
      expect(refused).to.include({ name: 'BasisTheoryApiError', status: 401 });
      const renewed = await clientOf(regenerated.key ?? '');
      expect((await renewed.applications.retrieveByKey()).id).to.equal(created.id);
    });

    it('gets validation errors by path', async () => {
      const { applications } = await manager();
      const failure = await failureOf(
        applications.create({ name: '', type: 'private', permissions: ['token:read'] }),
      );
      expect(failure).to.include({ status: 400 });
      expect(failure.data).to.deep.include({
        title: 'One or more validation errors occurred.',
        status: 400,
        detail: 'The inputs supplied to the API are invalid',
      });
      expect(failure.data.errors).to.have.all.keys('name');
    });
  });

  describe('permissions', () => {
    it('lists them, all or by application type', async () => {
      const { permissions } = await manager();
      expect(await permissions.list()).to.have.length(30);
      const forPublic = await permissions.list({ applicationType: 'public' });
      expect(forPublic.map(({ type }) => type)).to.deep.equal(['token:create', 'token:update']);
      expect(forPublic[0]?.applicationTypes).to.deep.equal(['public', 'private']);
    });
  });

  describe('tenants', () => {
    it('retrieves, updates and deletes', async () => {
      const { id, managementKey } = await server.addTenant('Initech');
      const { tenants } = await clientOf(managementKey);
      expect(await tenants.retrieve()).to.include({ id, name: 'Initech' });
      const settings = { deduplicateTokens: 'true' };
      const updated = await tenants.update({ name: 'Initrode', settings });
      expect(updated).to.deep.include({ id, name: 'Initrode', settings });
      await tenants.delete();
      expect(await failureOf(tenants.retrieve())).to.include({ status: 401 });
    });
  });
});

interface ApiFailure extends Error {
  status: number;
  data: { errors?: Record<string, string[]> };
}

async function failureOf(work: Promise<unknown>): Promise<ApiFailure> {
  try {
    await work;
  } catch (error) {
    return error as ApiFailure;
  }
  throw new Error('the call succeeded');
}
