/** What `req.bt` says to the gateway and makes of the answers; the gateway's side is in test/api. */
import { expect } from 'chai';
import { loadPrelude } from '../../support/prelude.ts';

type Call = (...values: unknown[]) => Promise<unknown>;

interface Client {
  tokens: Record<'create' | 'retrieve' | 'update' | 'delete' | 'list' | 'search', Call>;
  reactors: { react: Call };
  tokenize: Call;
  detokenize: Call;
}

/** A client whose calls are all answered with `answer`, and what it asked. */
function clientAnswered(answer: unknown, failure?: Error) {
  const asked: { operation: string; id?: string; query?: string; body?: unknown }[] = [];
  const createClient = loadPrelude('bt-client') as (call: unknown) => Client;
  const bt = createClient((service: string, text: string) => {
    expect(service).to.equal('bt');
    const { body, ...rest } = JSON.parse(text);
    asked.push(body === undefined ? rest : { ...rest, body: JSON.parse(body) });
    const settled = failure ? Promise.reject(failure) : Promise.resolve(JSON.stringify(answer));
    return { answer: settled, cancel: () => undefined };
  });
  return { bt, asked };
}

async function failureOf(promise: Promise<unknown>): Promise<Record<string, unknown>> {
  try {
    await promise;
  } catch (error) {
    return error as Record<string, unknown>;
  }
  throw new Error('the call did not fail');
}

const TOKEN = {
  tenant_id: 't',
  data: { card_number: 1, '': [{ __a_b: 2 }] },
  metadata: { user_id: '9' },
  mask: { card_number: 'x' },
  search_indexes: ['a_b'],
  _extras: { deduplicated: true },
};
const CAMEL_TOKEN = {
  tenantId: 't',
  data: TOKEN.data,
  metadata: TOKEN.metadata,
  mask: { cardNumber: 'x' },
  searchIndexes: ['a_b'],
  extras: { deduplicated: true },
};

describe('req.bt', () => {
  it('sends a token in snake_case, but its data and metadata as they are, and its mask not', async () => {
    const { bt, asked } = clientAnswered({ status: 201, body: TOKEN });
    const token = {
      ...{ type: 'token', data: { aB: { cD: 1 } }, metadata: { userId: '9' }, mask: { aB: 'x' } },
      ...{ searchIndexes: ['{{ data.aB }}'], expiresAt: new Date(0), deduplicateToken: false },
    };
    expect(await bt.tokens.create(token)).to.deep.equal(CAMEL_TOKEN);
    await bt.tokens.update('id', token);
    const body = {
      ...{ type: 'token', data: { aB: { cD: 1 } }, metadata: { userId: '9' }, mask: { a_b: 'x' } },
      ...{ search_indexes: ['{{ data.aB }}'], expires_at: '1970-01-01T00:00:00.000Z' },
      deduplicate_token: false,
    };
    expect(asked).to.deep.equal([
      { operation: 'createToken', body },
      { operation: 'updateToken', id: 'id', body },
    ]);
  });

  it('leaves the token that it was given as it was', async () => {
    const { bt } = clientAnswered({ status: 201, body: TOKEN });
    const token = Object.freeze({ type: 'token', data: Object.freeze({ aB: 1 }) });
    await bt.tokens.create(token);
    expect(token).to.deep.equal({ type: 'token', data: { aB: 1 } });
  });

  it('reads and deletes by id, whatever the id is made of', async () => {
    const { bt, asked } = clientAnswered({ status: 200, body: TOKEN });
    const ids = ['../applications', '..', '', 'a/b?c#d%2F', '%2e%2e%2fkeys', 'é\n', '__proto__'];
    for (const id of ids) expect(await bt.tokens.retrieve(id)).to.deep.equal(CAMEL_TOKEN);
    expect(asked).to.deep.equal(ids.map((id) => ({ operation: 'getToken', id })));
    expect(await bt.tokens.delete('a/../b')).to.equal(undefined);
    expect(asked.at(-1)).to.deep.equal({ operation: 'deleteToken', id: 'a/../b' });
  });

  it('lists with the parameters of the query, and converts a page', async () => {
    const pagination = { total_items: 1, page_number: 1 };
    const { bt, asked } = clientAnswered({ status: 200, body: { pagination, data: [TOKEN] } });
    const query = { page: 2, id: ['a', 'b&c'], someType: 'x', metadata: { userId: 9, 'a b': 'é' } };
    expect(await bt.tokens.list({ ...query, none: undefined, skipped: () => 1 })).to.deep.equal({
      pagination: { totalItems: 1, pageNumber: 1 },
      data: [CAMEL_TOKEN],
    });
    expect(asked[0]?.query).to.equal(
      'page=2&id=a&id=b%26c&some_type=x&metadata.userId=9&metadata.a%20b=%C3%A9',
    );
    await bt.tokens.list();
    expect(asked[1]).to.deep.equal({ operation: 'listTokens', query: '' });
    await bt.tokens.search({ query: 'data:x', pageSize: 1 });
    expect(asked[2]).to.deep.equal({
      operation: 'searchTokens',
      body: { query: 'data:x', page_size: 1 },
    });
  });

  it('leaves the bodies and answers of tokenize, detokenize and react as they are', async () => {
    const raw = { a_b: { cD: 1 }, tokens: { tenant_id: 't' } };
    const { bt, asked } = clientAnswered({ status: 200, body: raw });
    expect(await bt.tokenize(raw)).to.deep.equal(raw);
    expect(await bt.detokenize(raw)).to.deep.equal(raw);
    const request = { args: raw, callbackUrl: 'x', timeoutMs: 1 };
    expect(await bt.reactors.react('r', request)).to.deep.equal(raw);
    expect(asked).to.deep.equal([
      { operation: 'tokenize', body: raw },
      { operation: 'detokenize', body: raw },
      { operation: 'react', id: 'r', body: request },
    ]);
  });

  it('fails with status and data, camelCased, for an answer of 300 and above', async () => {
    const body = { title: 'x', status: 400, errors: { 'search_indexes.first_one': ['bad_one'] } };
    const { bt } = clientAnswered({ status: 400, body });
    for (const call of [bt.tokens.create({}), bt.tokens.list(), bt.tokens.delete('x')]) {
      const error = await failureOf(call);
      expect(error).to.be.instanceOf(Error);
      expect(error.name).to.equal('BasisTheoryApiError');
      expect(error.message).to.equal('Request failed with status code 400');
      expect(error.status).to.equal(400);
      const errors = { searchIndexesFirstOne: ['bad_one'] };
      expect(error.data).to.deep.equal({ title: 'x', status: 400, errors });
    }
    const raw = await failureOf(bt.reactors.react('x', {}));
    expect(raw.data).to.deep.equal(body);
    expect((await failureOf(clientAnswered({ status: 302 }).bt.tokenize(1))).status).to.equal(302);
  });

  it('fails with status -1 when there is no answer', async () => {
    const failure = Object.assign(new Error('At most 1,000 calls.'), { code: 'TOO_MANY_CALLS' });
    const error = await failureOf(clientAnswered(undefined, failure).bt.tokens.retrieve('x'));
    expect(error).to.include({
      ...{ name: 'BasisTheoryApiError', message: 'At most 1,000 calls.' },
      ...{ status: -1, code: 'TOO_MANY_CALLS' },
    });
  });

  it('does not take options for another key or a transaction, and takes the others', async () => {
    const { bt, asked } = clientAnswered({ status: 200, body: TOKEN });
    const options = { idempotencyKey: 'i', correlationId: 'c', headers: { 'BT-API-KEY': 'k' } };
    await bt.tokens.retrieve('x', options);
    await bt.tokens.list(undefined, { apiKey: undefined, transactionId: null });
    for (const name of ['apiKey', 'transactionId']) {
      const error = await failureOf(bt.tokens.create({}, { [name]: 'secret' }));
      expect(error.message).to.equal(`The option ${name} is not available in a reactor.`);
    }
    expect(asked).to.deep.equal([
      { operation: 'getToken', id: 'x' },
      { operation: 'listTokens', query: '' },
    ]);
  });

  it('rejects and never throws, whatever it is given', async () => {
    const { bt } = clientAnswered({ status: 400 });
    const cycle: Record<string, unknown> = { big: 1n };
    cycle.self = cycle;
    const id = { toString: () => Symbol('x') };
    for (const call of [bt.tokens.create(cycle), bt.tokenize(cycle), bt.tokens.retrieve(id)]) {
      expect(await failureOf(call)).to.be.instanceOf(Error);
    }
    for (const nothing of [undefined, null, 7, 'x', []]) {
      expect((await failureOf(bt.tokens.create(nothing))).status).to.equal(400);
    }
  });

  it('keeps members of an answer that look like a prototype to themselves', async () => {
    const text = '{"data":{"__proto__":{"polluted":1}},"mask":{"__proto__":{"polluted":1}}}';
    const { bt } = clientAnswered({ status: 200, body: JSON.parse(text) });
    const token = (await bt.tokens.retrieve('x')) as Record<string, object>;
    expect({}).not.to.have.property('polluted');
    expect(Object.keys(token.data ?? {})).to.deep.equal(['__proto__']);
    expect(token.mask).to.deep.equal({ proto: { polluted: 1 } });
  });
});
