/** Searches of random queries over random tokens find what a naive evaluation in memory finds. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { AccessRule } from '../../../shared/access/access-rules.ts';
import { QUERY_LENGTH_MAX } from '../../../shared/tokens/search-query.ts';
import type { TokenBody, TokenClient, TokenPage } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const RUNS = 150;
const WORDS = ['a', 'B', 'ab', 'a b', 'É', 'ß', '7'];
const CONTAINERS = ['/', '/x/', '/x/y/', '/xy/', '/z/'];
const TYPES = ['token', 'employer_id_number'];

type Query =
  | { op: 'and' | 'or'; parts: Query[] }
  | { op: 'not'; part: Query }
  | { op: 'term'; text: string; matches: (token: TokenBody) => boolean };

const fold = (text: string): string => text.toLowerCase().toUpperCase().toLowerCase();
const quoted = (text: string): string => `"${text}"`;

/** What the search indexes of a token say: its data is the word itself, or the number's forms. */
function indexed({ type, data }: TokenBody): string[] {
  const text = String(data);
  if (type === 'token') return [text];
  return [text, text.replaceAll('-', ''), text.slice(-4)];
}

const term = (text: string, matches: (token: TokenBody) => boolean): Query => ({
  op: 'term',
  text,
  matches,
});

/** Terms over the tokens that there are. */
function terms(tokens: readonly TokenBody[]): fc.Arbitrary<Query> {
  const token = fc.constantFrom(...tokens);
  const word = fc.constantFrom(...WORDS, ...WORDS.map((text) => text.toUpperCase()));
  const instant = token.map(({ created_at }) => created_at);
  return fc.oneof(
    token.map(({ id }) => term(`id:${id}`, (other) => other.id === id)),
    fc.constantFrom(...TYPES).map((type) => term(`type:${type}`, (other) => other.type === type)),
    fc
      .oneof(
        word,
        token.map((one) => indexed(one).at(-1) ?? ''),
      )
      .map((text) =>
        term(`data:${quoted(text)}`, (other) =>
          indexed(other).some((value) => value.toLowerCase() === text.toLowerCase()),
        ),
      ),
    fc
      .tuple(fc.constantFrom('k', 'l'), word)
      .map(([key, text]) =>
        term(
          `metadata.${key}:${quoted(text)}`,
          ({ metadata = {} }) => metadata[key] !== undefined && fold(metadata[key]) === fold(text),
        ),
      ),
    token.map(({ fingerprint = '' }) =>
      term(`fingerprint:${fingerprint}`, (other) => other.fingerprint === fingerprint),
    ),
    fc
      .constantFrom(...CONTAINERS)
      .map((path) => term(`container:${path}`, ({ containers }) => containers[0] === path)),
    fc
      .constantFrom('/', '/x', '/x/', '/w')
      .map((prefix) =>
        term(
          `container:${prefix}*`,
          ({ containers }) => containers[0]?.startsWith(prefix) === true,
        ),
      ),
    fc
      .tuple(instant, fc.boolean())
      .map(([from, inclusive]) =>
        term(`created_at:${inclusive ? '[' : '{'}${from} TO *]`, ({ created_at }) =>
          inclusive ? created_at >= from : created_at > from,
        ),
      ),
    fc
      .tuple(instant, fc.boolean())
      .map(([to, inclusive]) =>
        term(`modified_at:[* TO ${to}${inclusive ? ']' : '}'}`, ({ modified_at }) =>
          modified_at === undefined ? false : inclusive ? modified_at <= to : modified_at < to,
        ),
      ),
    token.map(({ modified_by = 'nobody' }) =>
      term(`modified_by:${modified_by}`, (other) => other.modified_by === modified_by),
    ),
  );
}

function queries(tokens: readonly TokenBody[]): fc.Arbitrary<Query> {
  const { query } = fc.letrec<{ query: Query }>((tie) => ({
    query: fc.oneof(
      { maxDepth: 2, depthIdentifier: 'query' },
      terms(tokens),
      fc.record({
        op: fc.constantFrom('and' as const, 'or' as const),
        parts: fc.array(tie('query'), { minLength: 2, maxLength: 3 }),
      }),
      fc.record({ op: fc.constant('not' as const), part: tie('query') }),
    ),
  }));
  return query.filter((one) => printed(one).length <= QUERY_LENGTH_MAX);
}

function printed(query: Query): string {
  switch (query.op) {
    case 'term':
      return query.text;
    case 'not':
      return `NOT (${printed(query.part)})`;
    default:
      return query.parts.map((part) => `(${printed(part)})`).join(` ${query.op.toUpperCase()} `);
  }
}

function matches(query: Query, token: TokenBody): boolean {
  switch (query.op) {
    case 'term':
      return query.matches(token);
    case 'not':
      return !matches(query.part, token);
    case 'and':
      return query.parts.every((part) => matches(part, token));
    case 'or':
      return query.parts.some((part) => matches(part, token));
  }
}

describe('token search', () => {
  let vault: Vault;
  let maker: TokenClient;
  const clients: { client: TokenClient; sees: (token: TokenBody) => boolean }[] = [];
  /** Newest first. */
  let tokens: TokenBody[];

  before(async () => {
    vault = await startVault();
    maker = vault.tokens;
    const searchIn = async (...containers: string[]) => {
      const rules = containers.map(
        (container, index): AccessRule => ({
          ...{ priority: index + 1, container, transform: 'reveal' },
          permissions: ['token:search'],
        }),
      );
      const sees = (token: TokenBody) =>
        containers.some((prefix) => token.containers[0]?.startsWith(prefix));
      clients.push({ client: await vault.clientWith({ rules }), sees });
    };
    await searchIn('/');
    await searchIn('/x/', '/z/');
    const made = Array.from({ length: 30 }, (_, index) => {
      const word = WORDS[index % WORDS.length];
      const isNumber = index % 5 === 4;
      return {
        type: isNumber ? 'employer_id_number' : 'token',
        data: isNumber ? `12-34567${10 + (index % 3)}` : word,
        containers: [CONTAINERS[(index * 7) % CONTAINERS.length]],
        ...(index % 4 === 0 ? {} : { metadata: { k: WORDS[(index * 3) % WORDS.length], l: 'a' } }),
        ...(isNumber ? {} : { search_indexes: ['{{ data }}'] }),
      };
    });
    for (const [index, body] of made.entries()) {
      const { id } = await maker.created(body);
      if (index % 6 === 0) await maker.patch(id, { mask: 'changed' });
    }
    tokens = (await maker.list('?size=100')).body.data;
    expect(tokens).to.have.length(made.length);
  });
  after(() => vault.stop());

  it('property: finds what a naive evaluation of the query finds', async function () {
    this.timeout(60_000);
    let withResults = 0;
    await fc.assert(
      fc.asyncProperty(
        queries(tokens),
        fc.constantFrom(...clients),
        fc.integer({ min: 1, max: 40 }),
        async (query, { client, sees }, size) => {
          const expected = tokens.filter((token) => sees(token) && matches(query, token));
          const json = { query: printed(query), size };
          const answer = await client.send<TokenPage>('POST /tokens/search', { json });
          expect(answer.status, answer.text).to.equal(200);
          expect(answer.body.pagination.total_items).to.equal(expected.length);
          expect(answer.body.data).to.deep.equal(expected.slice(0, size));
          if (expected.length > 0) withResults += 1;
        },
      ),
      { numRuns: RUNS },
    );
    // A generator whose queries find nothing would prove nothing.
    expect(withResults).to.be.greaterThan(RUNS / 3);
  });
});
