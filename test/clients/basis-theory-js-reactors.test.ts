/** Formulas and reactors through the unmodified client library, on a whole installation. */
import { BasisTheory } from '@basis-theory/basis-theory-js';
import { expect } from 'chai';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

const CODE = 'module.exports = async function (req) { return { raw: req.configuration }; };';

describe('@basis-theory/basis-theory-js: reactors', () => {
  let sallyport: TestSallyport;

  before(async () => {
    sallyport = await startSallyport({ LOG_LEVEL: 'silent' });
  });
  after(() => sallyport.stop());

  const manager = () =>
    new BasisTheory().init(sallyport.tenant.managementKey, {
      apiBaseUrl: sallyport.baseUrl,
      disableTelemetry: true,
    });
  const formulaOf = (name: string) => ({
    ...({ name, description: 'charges a card', type: 'private', code: CODE } as const),
    configuration: [{ name: 'SERVICE_API_KEY', description: 'of it', type: 'string' } as const],
    requestParameters: [
      { name: 'card.number', type: 'string', optional: false } as const,
      { name: 'amount', type: 'number', optional: true } as const,
    ],
  });

  it('creates, retrieves, updates, lists and deletes formulas', async () => {
    const { reactorFormulas } = await manager();
    const created = await reactorFormulas.create(formulaOf('Charge'));
    expect(created).to.deep.include(formulaOf('Charge'));
    expect(created).to.include({ status: 'verified' });
    expect(await reactorFormulas.retrieve(created.id)).to.deep.equal(created);

    const updated = await reactorFormulas.update(created.id, formulaOf('Charge again'));
    expect(updated).to.deep.include(formulaOf('Charge again'));
    expect(updated.modifiedBy).to.equal(sallyport.tenant.managementApplicationId);

    const listed = await reactorFormulas.list({ name: 'charge*', page: 1, size: 5 });
    expect(listed.data).to.deep.equal([updated]);
    expect(listed.pagination).to.include({ totalItems: 1, pageNumber: 1, pageSize: 5 });

    await reactorFormulas.delete(created.id);
    const gone = await failureOf(reactorFormulas.retrieve(created.id));
    expect(gone).to.include({ name: 'BasisTheoryApiError', status: 404 });
  });

  it('creates, retrieves, updates, patches, lists and deletes reactors', async () => {
    const { applications, reactorFormulas, reactors } = await manager();
    const formula = await reactorFormulas.create(formulaOf('For reactors'));
    const { key: _shownOnce, ...application } = await applications.create({
      ...{ name: 'In the reactor', type: 'private', permissions: ['token:create'] },
    });
    // The types of this version know `code` only; the formulas of their era are sent the same way.
    const request = {
      ...{ name: 'Charges', formula: { id: formula.id }, application: { id: application.id } },
      configuration: { SERVICE_API_KEY: 'sk_1' },
    };
    const created = await reactors.create(request);
    expect(created).to.deep.include({
      ...{ name: 'Charges', tenantId: sallyport.tenant.id, formula, application },
      configuration: { SERVICE_API_KEY: 'sk_1' },
    });
    expect(await reactors.retrieve(created.id)).to.deep.equal(created);

    const updated = await reactors.update(created.id, {
      ...{ name: 'Renamed', configuration: { SERVICE_API_KEY: 'sk_2' } },
    });
    expect(updated).to.deep.include({ name: 'Renamed', formula });
    expect(updated).not.to.have.property('application');

    await reactors.patch(created.id, { application: { id: application.id } });
    const patched = await reactors.retrieve(created.id);
    expect(patched).to.deep.include({ name: 'Renamed', formula, application });
    expect(patched.configuration).to.deep.equal({ SERVICE_API_KEY: 'sk_2' });

    const listed = await reactors.list({ id: [created.id], name: 'rename*' });
    expect(listed.data).to.deep.equal([patched]);

    const used = await failureOf(reactorFormulas.delete(formula.id));
    expect(used).to.include({ status: 409 });
    await reactors.delete(created.id);
    await reactorFormulas.delete(formula.id);
    expect(await failureOf(reactors.retrieve(created.id))).to.include({ status: 404 });
  });

  it('creates reactors with code of their own, and learns where it is wrong', async () => {
    const { reactors } = await manager();
    const created = await reactors.create({ name: 'Own', code: CODE });
    expect(created).to.include({ name: 'Own', code: CODE });
    const failure = await failureOf(reactors.patch(created.id, { code: 'module.exports = (' }));
    expect(failure).to.include({ status: 400 });
    expect(failure.data.errors?.code?.[0]).to.match(/\(line 1\)$/);
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
