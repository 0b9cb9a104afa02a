/** docs/expressions.md against the code: examples are evaluated, and every filter has its row. */
import { expect } from 'chai';
import { compileDetokenizationBody } from '../../../shared/expressions/detokenization-body.ts';
import { FILTERS } from '../../../shared/expressions/filters/catalogue.ts';
import type { Filter } from '../../../shared/expressions/filters/filter.ts';
import * as limits from '../../../shared/expressions/limits.ts';
import { DETOKENIZED_TOKENS_MAX } from '../../../shared/tokens/detokenize.ts';
import {
  bytes,
  constantIn,
  count,
  DOCUMENT_LINES_MAX,
  read,
  tableBelow,
} from '../documented-limits.ts';
import { evaluate, problemOf } from './evaluate.ts';

const DOCUMENT = read('docs/expressions.md');
const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };
const TOKEN = { id: 'abc', type: 'card', data: CARD, metadata: { order: '7' } };

const inTokens = (name: string): number => constantIn('shared/api/tokens.ts', name);

const LIMITS = {
  "characters of a text with expressions in a token's own members": count(limits.SOURCE_MAX),
  'characters of a `fingerprint_expression`': count(inTokens('FINGERPRINT_EXPRESSION_LENGTH_MAX')),
  '`search_indexes` of a token': count(inTokens('SEARCH_INDEXES_MAX')),
  'filters of one expression': count(limits.FILTERS_MAX),
  'characters that the expressions of a mask, an `id` or an index yield': count(limits.OUTPUT_MAX),
  'distinct tokens of one body': count(DETOKENIZED_TOKENS_MAX),
  'expressions of one body': count(limits.DETOKENIZATION_EXPRESSIONS_MAX),
  'characters of their filters in all': count(limits.DETOKENIZATION_FILTERS_MAX),
  'what expressions put into one body, as JSON': bytes(limits.DETOKENIZATION_OUTPUT_MAX),
};

/** A call of filters, what it gets as JSON, and what it makes of it or says. */
interface Example {
  readonly call: string;
  readonly input: unknown;
  readonly outcome: string;
}

interface Row {
  /** As they are written: `slice: begin, length=1`. */
  readonly signatures: readonly string[];
  readonly examples: readonly Example[];
  readonly refused: readonly Example[];
}

const OWN = rowsBelow('Filters of Sallyport');
const LIQUID = rowsBelow('Filters of Liquid');
const ROWS = [...OWN, ...LIQUID];

function rowsBelow(heading: string): Row[] {
  // A bar within a cell is written `\|`.
  return tableBelow(DOCUMENT.replaceAll('\\|', '\0'), heading).map((cells) => {
    const [filters = '', examples = '', refused = ''] = cells.map((cell) =>
      cell.replaceAll('\0', '|'),
    );
    return {
      signatures: Array.from(filters.matchAll(/`([^`]+)`/g), ([, signature = '']) => signature),
      examples: examplesIn(examples, /`([^`]+)` of `([^`]+)` is `([^`]+)`/g),
      refused: refused === 'never' ? [] : examplesIn(refused, /`([^`]+)` of `([^`]+)`: ([^;]+)/g),
    };
  });
}

/** None may be written in another way, and so be looked over. */
function examplesIn(cell: string, pattern: RegExp): Example[] {
  const found = Array.from(cell.matchAll(pattern), ([, call = '', input = '', outcome = '']) => ({
    call,
    input: JSON.parse(input) as unknown,
    outcome,
  }));
  expect(found, cell)
    .to.have.length(cell.split('` of `').length - 1)
    .above(0);
  return found;
}

const nameOf = (call: string): string => call.split(/[:|]/)[0]?.trim() ?? '';
const namesOf = (examples: readonly Example[]): Set<string> =>
  new Set(examples.flatMap(({ call }) => call.split(' | ')).map(nameOf));

/** Random characters are written `?`. */
function expectMade(made: unknown, outcome: string, call: string): void {
  const documented = JSON.parse(outcome) as unknown;
  if (!call.startsWith('alias_')) expect(made, call).to.deep.equal(documented);
  else expect(made).to.match(new RegExp(`^${String(documented).replaceAll('?', '[0-9a-z]')}$`));
}

/** The parameters as the document writes them. */
function documentedParameters(filter: Filter, signature: string): string[] {
  const names = (signature.split(': ')[1]?.split(', ') ?? []).map((one) => one.split(/[=?]/)[0]);
  return filter.parameters.map((parameter, index) => {
    if (!('fallback' in parameter)) return names[index] ?? '';
    const { fallback } = parameter;
    return `${names[index]}${fallback === undefined ? '?' : `=${JSON.stringify(fallback)}`}`;
  });
}

/** Lines of the fenced block that begins with this language. */
function blockOf(language: string): string[] {
  const block = DOCUMENT.split(`\n\`\`\`${language}\n`)[1]?.split('\n```')[0] ?? '';
  return block.split('\n');
}

function detokenize(body: unknown): unknown {
  const text = JSON.stringify(body).replaceAll('<token id>', TOKEN.id);
  const views = new Map([[TOKEN.id, { data: CARD, token: TOKEN }]]);
  return compileDetokenizationBody(JSON.parse(text)).evaluate(views);
}

describe('docs/expressions.md', () => {
  it('has every filter in one table, and no other', () => {
    const documented = ROWS.flatMap(({ signatures }) => signatures.map(nameOf));
    expect(documented.toSorted()).to.deep.equal([...FILTERS.keys()].toSorted());
  });

  it('has the arguments of each filter with the defaults there are', () => {
    for (const signature of ROWS.flatMap(({ signatures }) => signatures)) {
      const filter = FILTERS.get(nameOf(signature));
      expect(filter, signature).not.to.equal(undefined);
      if (filter === undefined) continue;
      const parameters = documentedParameters(filter, signature);
      const list = parameters.length === 0 ? '' : `: ${parameters.join(', ')}`;
      expect(signature).to.equal(`${nameOf(signature)}${list}`);
      for (const [name, index] of Object.entries(filter.named ?? {})) {
        expect(parameters[index]).to.match(new RegExp(`^${name}=`));
      }
    }
  });

  for (const { signatures, examples, refused } of ROWS) {
    it(`has true examples of ${signatures.map(nameOf).join(', ')}`, () => {
      expect([...namesOf(examples)]).to.include.members(signatures.map(nameOf));
      for (const { call, input, outcome } of examples) {
        expectMade(evaluate(`{{ data | ${call} }}`, input), outcome, call);
      }
      for (const { call, input, outcome } of refused) {
        expect(problemOf(`{{ data | ${call} }}`, input).problem, call).to.equal(outcome);
      }
    });
  }

  it('says which filters keep null', () => {
    const yieldNull = (rows: readonly Row[]): string[] => {
      const examples = rows.flatMap((row) => row.examples);
      const kept = examples.filter(({ call }) => {
        // Bytes have no null, and a list as argument is none without data.
        const hasNone = / \| to_base\d\d$|: data$/.test(call);
        return !hasNone && evaluate(`{{ data | ${call} }}`, null) === null;
      });
      return [...namesOf(kept)].toSorted();
    };
    const exceptions = ['default', 'hmac', 'json_stringify', 'to_base16', 'to_base64'];
    const others = OWN.flatMap(({ signatures }) => signatures.map(nameOf)).filter(
      (name) => !exceptions.includes(name),
    );
    expect(yieldNull(OWN)).to.deep.equal(others.toSorted());
    expect(yieldNull(LIQUID)).to.deep.equal(['date', 'find', 'find_index', 'first', 'last']);
  });

  it('names formats and algorithms that there are', () => {
    const listed = (word: string): string[] => {
      const list = new RegExp(`${word}: ((?:\`[^\`]+\`,? ?)+)`).exec(DOCUMENT)?.[1] ?? '';
      return Array.from(list.matchAll(/`([^`]+)`/g), ([, name = '']) => name);
    };
    const written = (file: string): number =>
      read(`shared/expressions/filters/${file}.ts`).match(/^ {2}\['[\w/-]+', /gm)?.length ?? 0;
    expect(listed('Formats')).to.have.length(written('card'));
    expect(listed('Algorithms')).to.have.length(written('crypto'));
    for (const format of listed('Formats')) {
      expect(evaluate(`{{ data | card_exp: "${format}" }}`, CARD), format).to.be.a('string');
    }
    for (const name of listed('Algorithms')) {
      expect(evaluate(`{{ data | hmac: "${name}", "k" | to_base16 }}`, 'x')).to.be.a('string');
    }
  });

  it('shows what whole expressions, expressions in text and paths become', () => {
    const lines = blockOf('').map((line) => line.split(' → '));
    expect(lines).to.have.length.above(10);
    for (const [source = '', outcome = ''] of lines) {
      const made = source.includes('<token id>') ? detokenize(source) : evaluate(source, CARD);
      expect(made, source).to.deep.equal(JSON.parse(outcome));
    }
  });

  it('shows how quotes are written in a JSON body', () => {
    expect(detokenize(JSON.parse(blockOf('json').join('\n')))).to.deep.equal({
      number: CARD.number,
      last: '4242',
    });
  });

  it('has every limit with the number that the code has', () => {
    const documented = tableBelow(DOCUMENT, 'Limits');
    expect(documented).to.deep.equal(Object.entries(LIMITS));
  });

  it('stays short', () => {
    expect(DOCUMENT.trimEnd().split('\n')).to.have.length.at.most(DOCUMENT_LINES_MAX);
    for (const line of DOCUMENT.split('\n').filter((one) => !one.startsWith('|'))) {
      expect(line).to.have.length.at.most(120);
    }
  });
});
