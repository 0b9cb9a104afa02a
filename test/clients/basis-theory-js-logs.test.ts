/** Logs as the unmodified client library @basis-theory/basis-theory-js reads them. */
import { BasisTheory } from '@basis-theory/basis-theory-js';
import { expect } from 'chai';
import { startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';

describe('@basis-theory/basis-theory-js and logs', () => {
  let server: TestControlPlane;
  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());

  it('lists them by what they are about and when, page by page', async () => {
    const { managementApplicationId, managementKey } = server.tenant;
    const options = { apiBaseUrl: server.baseUrl, disableTelemetry: true };
    const { applications, logs } = await new BasisTheory().init(managementKey, options);
    const draft = { name: 'A', type: 'private', permissions: ['token:read'] } as const;
    const { id } = await applications.create({ ...draft, permissions: [...draft.permissions] });
    await applications.delete(id);
    const page = (number: number) =>
      logs.list({
        ...{ entityType: 'application', entityId: id, page: number, size: 1 },
        startDate: new Date(Date.now() - 60_000).toISOString(),
        endDate: new Date(Date.now() + 60_000).toISOString(),
      });
    const [newest, older, none] = [await page(1), await page(2), await page(3)];
    expect(newest.pagination).to.include({ totalItems: 2, pageNumber: 1, totalPages: 2 });
    expect(newest.data[0]).to.include({
      ...{ tenantId: server.tenant.id, actorId: managementApplicationId, entityId: id },
      ...{ actorType: 'application', entityType: 'application', operation: 'delete' },
      message: 'Application deleted',
    });
    expect(older.data[0]).to.include({ operation: 'create', message: 'Application created' });
    expect(none.data).to.deep.equal([]);
  });
});
