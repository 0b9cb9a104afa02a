/** Proxies through the unmodified client library, on a whole installation. */
import { BasisTheory } from '@basis-theory/basis-theory-js';
import { expect } from 'chai';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

const CODE =
  'module.exports = async (req) => ({ body: req.args.body, headers: req.args.headers });';
const OTHER_CODE = 'module.exports = async () => ({});';

describe('@basis-theory/basis-theory-js: proxies', () => {
  let sallyport: TestSallyport;

  before(async () => {
    sallyport = await startSallyport({
      ...{ LOG_LEVEL: 'silent', SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8' },
    });
  });
  after(() => sallyport.stop());

  const manager = () =>
    new BasisTheory().init(sallyport.tenant.managementKey, {
      apiBaseUrl: sallyport.baseUrl,
      disableTelemetry: true,
    });
  const request = {
    ...{ name: 'To the bank', destinationUrl: 'https://bank.example/api' },
    ...{ requestTransform: { code: CODE }, responseTransform: { code: OTHER_CODE } },
    // The names of a configuration are the customer's: no case is converted.
    ...{ configuration: { SERVICE_key: 'sk_1', anotherKey: 'sk_2' }, requireAuth: false },
  };

  it('creates, retrieves, updates, patches, lists and deletes them', async () => {
    const { applications, proxies } = await manager();
    const application = await applications.create({
      ...{ name: 'In the transform', type: 'private', permissions: ['token:create'] },
    });
    const created = await proxies.create({ ...request, application: { id: application.id } });
    expect(created).to.deep.include({
      ...{ ...request, applicationId: application.id, tenantId: sallyport.tenant.id },
      createdBy: sallyport.tenant.managementApplicationId,
    });
    expect(created.key).to.match(/^[1-9A-HJ-NP-Za-km-z]{22}$/);
    expect(await proxies.retrieve(created.id)).to.deep.equal(created);

    const renamed = { name: 'Renamed', destinationUrl: 'https://bank.example' };
    const updated = await proxies.update(created.id, renamed);
    expect(updated).to.deep.include({ ...renamed, key: created.key, requireAuth: true });
    expect(updated.configuration).to.deep.equal({});
    expect(updated).not.to.have.any.keys('requestTransform', 'responseTransform', 'applicationId');

    await proxies.patch(created.id, {
      ...{ requestTransform: { code: CODE }, configuration: { someKey: 'sk_3' } },
      application: { id: application.id },
    });
    const patched = await proxies.retrieve(created.id);
    expect(patched).to.deep.include({
      ...{ ...renamed, key: created.key, applicationId: application.id },
      ...{ requestTransform: { code: CODE }, configuration: { someKey: 'sk_3' } },
    });

    const listed = await proxies.list({ id: [created.id], name: 'rename*', page: 1, size: 5 });
    expect(listed.data).to.deep.equal([patched]);
    expect(listed.pagination).to.include({ totalItems: 1, pageNumber: 1, pageSize: 5 });

    await proxies.delete(created.id);
    expect(await failureOf(proxies.retrieve(created.id))).to.include({ status: 404 });
  });

  it('learns where code and destination are wrong', async () => {
    const { proxies } = await manager();
    const code = 'module.exports = (';
    const broken = await failureOf(proxies.create({ ...request, requestTransform: { code } }));
    expect(broken).to.include({ name: 'BasisTheoryApiError', status: 400 });
    expect(Object.values(broken.data.errors ?? {})[0]?.[0]).to.match(/\(line 1\)$/);
    const destinationUrl = 'https://10.0.0.1/';
    const refused = await failureOf(proxies.create({ ...request, destinationUrl }));
    expect(refused.data.errors).to.have.all.keys('destinationUrl');
  });

  it('reaches what the operator of the installation allows', async () => {
    const { proxies } = await manager();
    const created = await proxies.create({ ...request, destinationUrl: 'http://localhost:8080' });
    expect(created.destinationUrl).to.equal('http://localhost:8080');
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
