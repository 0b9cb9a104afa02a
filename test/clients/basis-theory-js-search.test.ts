/** The unmodified client library @basis-theory/basis-theory-js: tokenize, detokenize by hand, search. */
import { BasisTheory } from '@basis-theory/basis-theory-js';
import { expect } from 'chai';
import { call } from '../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

describe('@basis-theory/basis-theory-js', () => {
  let sallyport: TestSallyport;
  let key: string;

  const clientOf = (apiKey: string) =>
    new BasisTheory().init(apiKey, { apiBaseUrl: sallyport.baseUrl, disableTelemetry: true });

  before(async () => {
    sallyport = await startSallyport();
    const { applications } = await clientOf(sallyport.tenant.managementKey);
    const application = await applications.create({
      ...{ name: 'Searching', type: 'private' },
      rules: [
        {
          ...{ description: 'all', priority: 1, container: '/', transform: 'reveal' },
          permissions: ['token:create', 'token:read', 'token:search'],
        },
      ],
    });
    key = application.key ?? '';
  });
  after(() => sallyport.stop());

  it('tokenizes any JSON', async () => {
    const client = await clientOf(key);
    const made = (await client.tokenize({
      firstName: 'Ann',
      card: { type: 'card', data: CARD },
      tags: ['a', { type: 'token', data: 'b' }],
    })) as unknown as { firstName: string; card: { id: string }; tags: [string, { id: string }] };
    expect(made).to.have.all.keys('firstName', 'card', 'tags');
    expect((await client.tokens.retrieve(made.firstName)).data).to.equal('Ann');
    expect((await client.tokens.retrieve(made.card.id)).data).to.deep.equal(CARD);
    expect((await client.tokens.retrieve(made.tags[0])).data).to.equal('a');
    const json = { card: `{{ ${made.card.id} }}`, tag: `{{ ${made.tags[1].id} }}` };
    const { body } = await call(sallyport.baseUrl, 'POST /detokenize', { key, json });
    expect(body).to.deep.equal({ card: CARD, tag: 'b' });
  });

  it('searches', async () => {
    const client = await clientOf(key);
    const searchIndexes = ['{{ data | last4 }}'];
    const made = await client.tokens.create({ type: 'token', data: 'abc-9876', searchIndexes });
    const found = await client.tokens.search({ query: 'data:9876 AND type:token', size: 5 });
    expect(found.data).to.deep.equal([{ ...made, data: 'abc-9876' }]);
    expect(found.pagination).to.deep.equal({
      ...{ totalItems: 1, pageNumber: 1, pageSize: 5, totalPages: 1 },
    });
    const refused = await client.tokens.search({ query: 'data:(' }).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refused).to.include({ name: 'BasisTheoryApiError', status: 400 });
  });
});
