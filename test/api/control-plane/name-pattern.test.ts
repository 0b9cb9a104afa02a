/** The `name` filter, judged by the database that will carry it out. */
import { expect } from 'chai';
import fc from 'fast-check';
import pg from 'pg';
import { readNamePattern } from '../../../control-plane/name-pattern.ts';
import { QueryParams } from '../../../shared/http/query.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts';

describe('the name filter', () => {
  let database: TestDatabase;
  let client: pg.Client;

  before(async () => {
    database = await createTestDatabase();
    client = new pg.Client({ connectionString: database.connectionString });
    await client.connect();
  });
  after(async () => {
    await client.end();
    await database.drop();
  });

  async function matches(name: string, filter: string): Promise<boolean> {
    const pattern = readNamePattern(new QueryParams(['name'], [filter]));
    const { rows } = await client.query<{ matches: boolean }>('SELECT $1::text ~ $2 AS matches', [
      name,
      pattern,
    ]);
    return rows[0]?.matches === true;
  }

  const cases: [name: string, filter: string, matches: boolean][] = [
    ['Charge a card', 'A CARD', true],
    ['Charge a card', 'charge*card', true],
    ['Charge a card', 'card*', false],
    ['Charge a card', '*', true],
    ['Charge a card', '', true],
    ['Übung für Ärzte', 'üBUNG FÜR ä', true],
    ['ΣΟΦΙΑ', 'σοφια', true],
    ['straße', 'STRAßE', true],
    ['a😀b', 'A😀B', true],
    ['a.c', 'a.c', true],
    ['abc', 'a.c', false],
    ['abc', 'a%', false],
    ['abc', 'a_c', false],
    ['abc', '[a-z]', false],
    ['abc', '(?i)ABC', false],
    ['abc', '\\w', false],
  ];
  for (const [name, filter, expected] of cases) {
    it(`${expected ? 'finds' : 'does not find'} ${name} by ${JSON.stringify(filter)}`, async () => {
      expect(await matches(name, filter)).to.equal(expected);
    });
  }

  it('finds every name by itself and by its parts, whatever is in them', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.string({ unit: fc.constantFrom(...'\\^$.|?+()[]{}*-:=!<>&%_\'"aZ 09'), maxLength: 30 }),
    );
    // NUL is refused before it comes here.
    const named = text.filter((value) => !value.includes('\0'));
    const property = fc.asyncProperty(named, named, named, async (before, part, after) => {
      const plain = part.replaceAll('*', '');
      expect(await matches(before + plain + after, plain)).to.equal(true);
      expect(await matches(before + part + after, `*${part}*`)).to.equal(true);
    });
    await fc.assert(property, { numRuns: 300 });
  });
});
