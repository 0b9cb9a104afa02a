/** JSON bodies of proxies: values go in at their strings, and not another byte changes (attacks C-05). */
import { expect } from 'chai';
import fc from 'fast-check';
import { findJsonTexts } from '../../../data-plane/proxy/splice-json.ts';
import {
  compileDetokenizationBody,
  type DetokenizationBody,
} from '../../../shared/expressions/detokenization-body.ts';
import { detokenized, refusal, type TokenTable, viewOf } from './detokenized-body.ts';

const CARD = { number: '4242424242424242', expiration_month: 11, note: 'a "b" \\ \n é' };
const TOKENS: TokenTable = {
  card: CARD,
  pan: CARD.number,
  year: 2030,
  yes: true,
  nil: null,
  list: [1, { a: 'x' }],
  trap: '{{ pan }}',
  quote: '"},"admin":{"x":"',
};

const splice = (body: string | Buffer) => detokenized(findJsonTexts, body, TOKENS);
const refused = (body: string | Buffer) => refusal(() => splice(body));

/** The same by way of parsing: what the tests hold splicing against. */
function evaluated(text: string): unknown {
  const body: DetokenizationBody = compileDetokenizationBody(JSON.parse(text));
  return body.evaluate(new Map(body.tokenIds.map((id) => [id, viewOf(id, TOKENS[id])])));
}

describe('a JSON body', () => {
  const untouched: [string, string][] = [
    ['no expression', '{"a":1}'],
    ['closing braces as minified JSON has them', '{"a":{"b":{"c":{}}}}'],
    ['closing braces in a text', '{"a":"}} x }}"}'],
    ['a tag in a text', '{"a":"{% raw %}"}'],
    ['numbers that no double holds', '{"a":12345678901234567890.10,"b":1e400,"c":-0}'],
    ['names twice', '{"a":1,"a":2,"":3}'],
    ['white space', ' {\r\n\t"a" :\t1 }\n'],
    ['half a character', '{"a":"\\ud800"}'],
    ['an expression as the name of a member', '{"{{ pan }}":1}'],
    ['braces with a character without width', '{"a":"{{ \u200bpan }}"}'],
    ['braces with a hard space', '{"a":"{{\u00a0pan }}"}'],
    ['braces that do not touch', '{"a":"{ {pan} }"}'],
    ['braces of another script', '{"a":"｛｛pan｝｝"}'],
    ['an escaped backslash before the spelling of braces', '{"a":"\\\\u007b\\\\u007bpan}}"}'],
    ['the same behind more backslashes', '["\\\\\\\\u007b\\u007b","\\\\u007B{ pan }}"]'],
    ['no JSON and no expression', '{"a": nonsense'],
    ['no JSON and half a spelling', '\\u007b'],
    ['nothing', ''],
  ];
  for (const [what, body] of untouched) {
    it(`is passed on as it came with ${what}`, async () => {
      expect(await splice(body)).to.deep.equal({ text: body, untouched: true, reads: [] });
    });
  }

  it('keeps bytes that are no text when there is no expression', async () => {
    const bytes = Buffer.from([0x22, 0xff, 0xfe, 0x22]);
    expect(findJsonTexts(bytes)).to.equal(undefined);
    const half = Buffer.from([...Buffer.from('"\\u007b'), 0xff]);
    expect(findJsonTexts(half)).to.equal(undefined);
  });

  const replaced: [string, string, string][] = [
    ['an object', '{"a":"{{ card }}"}', `{"a":${JSON.stringify(CARD)}}`],
    ['a list', '[ "{{list}}" ]', '[ [1,{"a":"x"}] ]'],
    ['a number', '{"a":"{{year}}"}', '{"a":2030}'],
    ['a truth', '"{{ yes }}"', 'true'],
    ['nothing', '["{{nil}}"]', '[null]'],
    ['a text in a text', '"no {{pan}}, {{ year }}"', '"no 4242424242424242, 2030"'],
    ['an object in a text', '"x {{list}}"', '"x [1,{\\"a\\":\\"x\\"}]"'],
    ['a filtered value', '"{{ pan | last4 }}"', '"4242"'],
    ['a part of a whole token', `"{{ token: card | json: '$.data.expiration_month' }}"`, '11'],
    ['what is between two', '{"a":"{{pan}}" , "b":1.10,"c":"{{year}}"}\n', ''],
    ['a spelled out expression', '"\\u007B\\u007bpan}\\u007d"', '"4242424242424242"'],
    ['an expression beside escapes', '"\\u00e9\\n\\/ {{year}}"', '"é\\n/ 2030"'],
    ['a value that looks like JSON', '{"a":"{{quote}}"}', '{"a":"\\"},\\"admin\\":{\\"x\\":\\""}'],
    [
      'one expression beside braces that are none',
      '["\\u0041 {{\u00a0pan }}","{{year}}"]',
      '["\\u0041 {{\u00a0pan }}",2030]',
    ],
    ['members named like prototypes', '{"__proto__":"{{year}}","constructor":"{{pan}}"}', ''],
  ];
  for (const [what, body, expected] of replaced) {
    it(`has ${what} put in`, async () => {
      const { text, untouched: isUntouched } = await splice(body);
      expect(isUntouched).to.equal(false);
      if (expected !== '') expect(text).to.equal(expected);
      expect(JSON.parse(text)).to.deep.equal(evaluated(body));
    });
  }

  it('is read once: an expression in the data of a token stays text', async () => {
    expect((await splice('["{{ trap }}","x{{trap}}"]')).text).to.equal(
      '["{{ pan }}","x{{ pan }}"]',
    );
  });

  it('asks for all its tokens at once, each once', async () => {
    const { reads } = await splice('["{{ pan }}","{{year}} {{pan}}",{"a":"{{token: card}}"}]');
    expect(reads).to.deep.equal([['pan', 'year', 'card']]);
  });

  const malformed: [string, string, string | undefined][] = [
    ['an opening without an end', '{"a":[1,{"b":"{{ pan"}]}', 'body.a.1.b'],
    ['nothing in the braces', '["{{ }}"]', 'body.0'],
    ['braces in braces', '{"a\\"{":{"x":"{{{{pan}}}}"}}', 'body.*.x'],
    ['a stray end beside an expression', '"{{ pan }} }}"', 'body'],
    ['a tag beside an expression', '"{{ pan }} {% raw %}"', 'body'],
    ['an unknown filter', '{"a":"x","b":"{{ pan | shell }}"}', 'body.b'],
    ['an object as the input of a text filter', '{"a":"{{ card | upcase }}"}', 'body.a'],
  ];
  for (const [what, body, path] of malformed) {
    it(`is refused for ${what}, naming the member and no value`, async () => {
      const error = await refused(body);
      expect(error.code).to.equal('validation');
      expect(Object.keys(error.errors ?? {})).to.deep.equal([path]);
      expect(JSON.stringify(error.toProblem())).to.not.match(/pan|shell|4242/);
    });
  }

  for (const body of ['{"a":{{pan}}}', '{"a":"{{pan}}"', '{"a":"{{pan}}",}', "{'a':'{{pan}}'}"]) {
    it(`is refused when it is no JSON and has an expression: ${body}`, async () => {
      const error = await refused(body);
      expect(error.message).to.match(/^Invalid JSON: .* line 1, column \d+$/);
    });
  }

  it('is refused when it has an expression and is not UTF-8, or is too deep', async () => {
    const bytes = Buffer.concat([Buffer.from('["{{pan}}","'), Buffer.from([0xff, 0x22, 0x5d])]);
    expect((await refused(bytes)).message).to.contain('not valid UTF-8');
    const deep = `${'['.repeat(66)}"{{pan}}"${']'.repeat(66)}`;
    expect((await refused(deep)).message).to.contain('nested deeper than 65 levels');
  });

  it('is refused for more than 5,000 texts with braces, expressions or not', async () => {
    const many = (text: string) => JSON.stringify(Array.from({ length: 5_001 }, () => text));
    for (const text of ['{{ pan }}', '{{\u00a0pan }}']) {
      const error = await refused(many(text));
      expect(JSON.stringify(error.errors)).to.contain('More than 5000 expressions');
    }
  });

  it('is refused when more than 5 MiB would be put in', async () => {
    const tokens = { big: 'x'.repeat(1024 * 1024) };
    const body = (count: number) =>
      JSON.stringify(Array.from({ length: count }, () => '{{ big }}'));
    const { text } = await detokenized(findJsonTexts, body(4), tokens);
    expect(text.length).to.be.greaterThan(4 * 1024 * 1024);
    const error = await refusal(() => detokenized(findJsonTexts, body(6), tokens));
    expect(error.errors).to.deep.equal({ 'body.4': ['The result is too long'] });
  });

  it('of 5 MiB of braces is refused at the first', async () => {
    expect((await refused('{'.repeat(5 * 1024 * 1024))).message).to.contain('line 1, column 2');
    const text = JSON.stringify('{'.repeat(5 * 1024 * 1024));
    expect((await refused(text)).errors).to.have.property('body');
  });

  const name = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', '0', '{{ pan }}'));
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: 'binary' }),
      fc.constantFrom('{{ card }}', 'a {{pan}} b', '{{year}}{{year}}', '{{ trap }}', '{', '}}'),
      fc.double(),
      fc.constantFrom(null, true, false),
      fc.array(tie('json'), { maxLength: 5 }),
      fc.array(fc.tuple(name, tie('json')), { maxLength: 5 }).map((members) => ({ members })),
    ),
  }));

  /** JSON text in any spelling: names twice, white space, escaped characters. */
  function spelled(value: unknown, random: () => number): string {
    const space = [' ', '', '\n\t'][Math.floor(random() * 3)];
    if (typeof value === 'string') return spelledText(value, random);
    if (Array.isArray(value))
      return `[${value.map((item) => spelled(item, random)).join(`${space},`)}]`;
    if (typeof value !== 'object' || value === null) return `${space}${JSON.stringify(value)}`;
    const { members } = value as { members: [string, unknown][] };
    const texts = members.map(
      ([key, item]) => `${spelledText(key, random)}${space}:${spelled(item, random)}`,
    );
    return `{${space}${texts.join(',')}}`;
  }

  function spelledText(text: string, random: () => number): string {
    const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index));
    const escaped = (unit: number) => `\\u${unit.toString(16).padStart(4, '0')}`;
    const spelling = units.map((unit) =>
      unit >= 0xd800 && unit <= 0xdfff
        ? escaped(unit)
        : random() < 0.1
          ? escaped(unit)
          : JSON.stringify(String.fromCharCode(unit)).slice(1, -1),
    );
    return `"${spelling.join('')}"`;
  }

  it('means what evaluating its parsed value means, whatever its spelling', async () => {
    const property = fc.asyncProperty(
      json,
      fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })),
      async (value, stream) => {
        const random = () => stream.next().value as number;
        const text = spelled(value, random);
        const { text: spliced, untouched: isUntouched } = await splice(text);
        const parsed: unknown = JSON.parse(text);
        if (!JSON.stringify(value).includes('{{')) expect(isUntouched).to.equal(true);
        if (isUntouched) expect(spliced).to.equal(text);
        else expect(JSON.parse(spliced)).to.deep.equal(evaluatedWithStrays(parsed));
      },
    );
    await fc.assert(property, { numRuns: 500 });
  });

  /** `compileDetokenizationBody` refuses what bodies of proxies may hold: `}}` without `{{`. */
  function evaluatedWithStrays(value: unknown): unknown {
    if (typeof value === 'string')
      return value.includes('{{') ? evaluated(JSON.stringify(value)) : value;
    if (Array.isArray(value)) return value.map(evaluatedWithStrays);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, evaluatedWithStrays(item)]),
    );
  }
});
