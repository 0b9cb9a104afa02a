/** Form bodies of proxies: values go in encoded for their place, and no other field changes. */
import { expect } from 'chai';
import fc from 'fast-check';
import { findFormTexts } from '../../../data-plane/proxy/splice-form.ts';
import { detokenized, refusal, type TokenTable } from './detokenized-body.ts';

const TOKENS: TokenTable = {
  pan: '4242424242424242',
  year: 2030,
  nil: null,
  card: { number: '4242424242424242', name: 'A&B=C' },
  trap: '{{ pan }}',
  hostile: 'a&admin=1+2%20ü\r\n',
};

const splice = (body: string | Buffer) => detokenized(findFormTexts, body, TOKENS);

describe('a form body', () => {
  const untouched = [
    ...['a=1&b=2', '', '&&=&a', 'a=%zz&b=100%', 'a={x}', 'a=%7B%7d', 'a=}}', 'a={%25+raw+%25}'],
    ...[
      '{{pan}}=1',
      '{{pan}}',
      '%7B%7Bpan%7D%7D',
      'a={+{pan}',
      'a={{%C2%A0pan}}',
      'a=%257B%257Bpan',
    ],
  ];
  for (const body of untouched) {
    it(`is passed on as it came: ${body}`, async () => {
      expect(await splice(body)).to.deep.include({ text: body, untouched: true });
    });
  }

  const replaced: [string, string][] = [
    ['card[number]={{pan}}&amount=10', 'card[number]=4242424242424242&amount=10'],
    ['a=%7B%7b+pan+}%7D&b=%zz', 'a=4242424242424242&b=%zz'],
    ['a=no:+{{pan}}%21&a={{ year }}', 'a=no%3A+4242424242424242%21&a=2030'],
    ['x={{nil}}', 'x='],
    [
      'x={{card}}&y',
      'x=%7B%22number%22%3A%224242424242424242%22%2C%22name%22%3A%22A%26B%3DC%22%7D&y',
    ],
    ['x={{hostile}}&y=1', 'x=a%26admin%3D1%2B2%2520%C3%BC%0D%0A&y=1'],
    ['x={{trap}}', 'x=%7B%7B+pan+%7D%7D'],
    ['{{pan}}={{year}}&=', '{{pan}}=2030&='],
    ["a={{ token: card | json: '$.data.number' }}", 'a=4242424242424242'],
  ];
  for (const [body, expected] of replaced) {
    it(`has values put in: ${body}`, async () => {
      expect((await splice(body)).text).to.equal(expected);
    });
  }

  it('keeps bytes of other fields that are no text', async () => {
    const bytes = Buffer.concat([Buffer.from('a={{year}}&b='), Buffer.from([0xff, 0x80])]);
    const found = findFormTexts(bytes);
    const expected = Buffer.concat([Buffer.from('a=2030&b='), Buffer.from([0xff, 0x80])]);
    expect(found?.splice([2030])).to.deep.equal(expected);
  });

  for (const body of ['a={{pan}}%ff', 'a={{pan}}%', 'a=1&a={{pan', 'a={{pan}}+}}', 'a={{}}']) {
    it(`is refused, naming the field: ${body}`, async () => {
      const error = await refusal(() => splice(body));
      expect(Object.keys(error.errors ?? {})).to.deep.equal(['body.a']);
    });
  }

  it('is refused for more than 5,000 fields with braces, also in their names', async () => {
    for (const field of ['{{&', 'a={{pan}}&', '{{a=1&']) {
      const error = await refusal(() => splice(field.repeat(5_001)));
      expect(error.errors).to.have.property('body');
    }
  });

  it('of 5 MiB of braces is done with at once', async () => {
    const braces = '{'.repeat(5 * 1024 * 1024);
    expect((await splice(braces)).untouched).to.equal(true);
    expect((await refusal(() => splice(`a=${braces}`))).errors).to.have.property('body.a');
  });

  it('reads as its fields do, with every value in its own field', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('{{ pan }}', 'x {{hostile}}', '{{year}}', '}}', '{{ card }}'),
    );
    const expected: Record<string, string> = {
      '{{ pan }}': '4242424242424242',
      'x {{hostile}}': `x ${TOKENS.hostile}`,
      '{{year}}': '2030',
      '{{ card }}': JSON.stringify(TOKENS.card),
    };
    const fields = fc.array(fc.tuple(fc.string({ unit: 'grapheme' }), text), { maxLength: 8 });
    const property = fc.asyncProperty(fields, async (pairs) => {
      fc.pre(pairs.every(([, value]) => value in expected || !value.includes('{{')));
      const { text: spliced } = await splice(new URLSearchParams(pairs).toString());
      const read = [...new URLSearchParams(spliced)];
      expect(read).to.deep.equal(
        pairs.map(([name, value]) => [
          name,
          Object.hasOwn(expected, value) ? expected[value] : value,
        ]),
      );
    });
    await fc.assert(property, { numRuns: 300 });
  });
});
