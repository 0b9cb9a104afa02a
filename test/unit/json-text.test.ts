import { expect } from 'chai';
import fc from 'fast-check';
import { ApiError } from '../../shared/errors.ts';
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX } from '../../shared/json-scan.ts';
import { parseJson, stringifyJson } from '../../shared/json-text.ts';

const parse = (text: string): unknown => parseJson(Buffer.from(text));

/** The detail of the 400 that parsing ends with. */
function refusal(input: string | Buffer, depthMax?: number): string {
  try {
    parseJson(typeof input === 'string' ? Buffer.from(input) : input, depthMax);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.code).to.equal('bad_request');
    expect(error.cause).to.equal(undefined);
    return error.message;
  }
  throw new Error('the text was accepted');
}

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
const members = (count: number): string =>
  `{${Array.from({ length: count }, (_, index) => `"k${index}":0`).join(',')}}`;

describe('parseJson: grammar', () => {
  it('refuses an empty body with its position', () => {
    expect(refusal('')).to.equal('Invalid JSON: unexpected end at line 1, column 1');
  });

  for (const [text, where] of [
    ['{', 'unexpected end at line 1, column 2'],
    ['{"type":"token",}', 'unexpected character at line 1, column 17'],
    ["{'type':1}", 'unexpected character at line 1, column 2'],
    ['{}\n// note', 'unexpected character at line 2, column 1'],
    ['{} x', 'unexpected character at line 1, column 4'],
    ['[1,\n 2\n,,]', 'unexpected character at line 3, column 2'],
    ['[1 2]', 'unexpected character at line 1, column 4'],
    ['{"a" 1}', 'unexpected character at line 1, column 6'],
    ['{"a":}', 'unexpected character at line 1, column 6'],
    ['[,1]', 'unexpected character at line 1, column 2'],
    ['[1}', 'unexpected character at line 1, column 3'],
    ['01', 'unexpected character at line 1, column 2'],
    ['1.', 'unexpected end at line 1, column 3'],
    ['1.e1', 'unexpected character at line 1, column 3'],
    ['1e', 'unexpected end at line 1, column 3'],
    ['-', 'unexpected end at line 1, column 2'],
    ['+1', 'unexpected character at line 1, column 1'],
    ['NaN', 'unexpected character at line 1, column 1'],
    ['nul', 'unexpected character at line 1, column 1'],
    ['"a', 'unexpected end at line 1, column 3'],
    ['"a\nb"', 'unexpected character at line 1, column 3'],
    ['"\\x41"', 'unexpected character at line 1, column 3'],
    ['"\\u00g1"', 'unexpected character at line 1, column 6'],
    ['"\\', 'unexpected end at line 1, column 3'],
    ['\u00a0{}', 'unexpected character at line 1, column 1'],
  ] as const) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      expect(refusal(text)).to.equal(`Invalid JSON: ${where}`);
    });
  }

  it('never repeats the text', () => {
    expect(refusal('{"number":4242424242424242 "cvc":"987"}')).to.not.match(/4242|987|number|cvc/);
  });

  it('accepts exactly what JSON.parse accepts, apart from its own rules', () => {
    const piece = fc.constantFrom(
      ...'{}[]:,"\\ \n\t01-.eEtrufalsn'.split(''),
      '"a"',
      'true',
      'null',
    );
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(text, (candidate) => {
        let expected: unknown;
        try {
          expected = JSON.parse(candidate);
        } catch {
          refusal(candidate);
          return;
        }
        try {
          expect(parse(candidate)).to.deep.equal(expected);
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          expect(error.message).to.match(/kept exactly|twice/);
        }
      }),
      { numRuns: 3000 },
    );
  });
});

describe('parseJson: bytes', () => {
  it('refuses a byte order mark', () => {
    expect(refusal(Buffer.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d))).to.match(/byte order mark/);
  });

  it('refuses invalid UTF-8 instead of storing U+FFFD, and works on afterwards', () => {
    for (const bytes of [
      [0xff],
      [0xc3],
      [0xc0, 0x80],
      [0xed, 0xa0, 0x80],
      [0xf5, 0x80, 0x80, 0x80],
    ]) {
      expect(refusal(Buffer.of(0x22, ...bytes, 0x22))).to.match(/not valid UTF-8/);
    }
    expect(parse('"é😀\ufffd"')).to.equal('é😀\ufffd');
  });

  it('refuses UTF-16', () => {
    refusal(Buffer.from('{"a":1}', 'utf16le'));
    refusal(Buffer.from('\ufeff{"a":1}', 'utf16le'));
  });

  it('refuses lone surrogate escapes wherever they are', () => {
    for (const sequence of [
      '\\ud800',
      '\\udc00',
      '\\uDBFF\\u0041',
      '\\ud800x',
      '\\ud83d\\ud83d',
      '\\ud83d\\n',
    ]) {
      expect(refusal(`"${sequence}"`)).to.equal('Invalid JSON: lone surrogate at line 1, column 2');
      expect(refusal(`{"${sequence}":1}`)).to.match(/lone surrogate/);
    }
    expect(refusal('"\\ud83d\\u00')).to.match(/unexpected end/);
  });

  it('keeps surrogate pairs and NUL', () => {
    expect(parse('"\\ud83d\\ude00 \\uD83D\\uDE00 \\u0000"')).to.equal('😀 😀 \0');
  });
});

describe('parseJson: limits', () => {
  it('accepts depth 64 and refuses depth 65', () => {
    expect(stringifyJson(parse(nested(JSON_DEPTH_MAX)))).to.equal(nested(64));
    expect(refusal(nested(65))).to.equal(
      'Invalid JSON: nested deeper than 64 levels at line 1, column 65',
    );
    expect(refusal(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`)).to.match(/nested deeper/);
    expect(refusal('[[[]]]', 2)).to.match(/nested deeper than 2 levels/);
  });

  it('refuses a million brackets at the 65th, without looking at the rest', () => {
    expect(refusal('['.repeat(1_000_000))).to.match(/nested deeper than 64 levels .* column 65$/);
  });

  it('counts depth, not brackets', () => {
    expect(parse(`[${Array(1000).fill('[]').join(',')}]`)).to.have.length(1000);
  });

  it('accepts 10,000 members and refuses one more, in one object or in many', () => {
    expect(Object.keys(parse(members(JSON_MEMBERS_MAX)) as object)).to.have.length(10_000);
    expect(refusal(members(JSON_MEMBERS_MAX + 1))).to.match(/more than 10000 object members/);
    expect(refusal(`[${Array(10_001).fill('{"a":1}').join(',')}]`)).to.match(/more than 10000/);
  });
});

describe('parseJson: members', () => {
  it('refuses duplicates, also in another spelling, at any depth, or when the value hides more', () => {
    for (const text of [
      '{"a":1,"a":1}',
      '{"a":1,"\\u0061":2}',
      '[{"x":{"b":1,"c":2,"b":3}}]',
      '{"a":{"x":1,"y":2},"a":{"x":1}}',
      '{"__proto__":1,"__proto__":2}',
      '{"":1,"":2}',
      '{"1":1,"1":2}',
    ]) {
      expect(refusal(text), text).to.match(/twice/);
    }
  });

  it('accepts equal names in different objects, and names that differ by case or form', () => {
    const text = '[{"a":1},{"a":{"a":2}},{"A":1,"a":2},{"\u00e9":1,"e\u0301":2}]';
    expect(stringifyJson(parse(text))).to.equal(text);
  });

  it('keeps names that mean something to JavaScript as plain own members', () => {
    const text =
      '{"__proto__":{"admin":true},"constructor":1,"toString":null,"hasOwnProperty":[],"then":0,"toJSON":"x"}';
    const value = parse(text) as Record<string, unknown>;
    expect(Object.getPrototypeOf(value)).to.equal(Object.prototype);
    expect(value.admin).to.equal(undefined);
    expect(stringifyJson(value)).to.equal(text);
  });
});

describe('stringifyJson', () => {
  it('round trips every JSON value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const bytes = Buffer.from(stringifyJson(value));
        expect(parseJson(bytes)).to.deep.equal(value);
      }),
    );
  });

  it('prints a text back byte for byte when it was compact', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = stringifyJson(value);
        expect(stringifyJson(parse(text))).to.equal(text);
      }),
    );
  });

  it('is not misled by strings that look like zeros', () => {
    expect(stringifyJson({ a: ':0,', b: '[0]' })).to.equal('{"a":":0,","b":"[0]"}');
    expect(stringifyJson([-0, '-0', null])).to.equal('[-0,"-0",null]');
    expect(stringifyJson(-0)).to.equal('-0');
    expect(stringifyJson(0)).to.equal('0');
  });

  it('throws for what JSON cannot say, instead of printing null', () => {
    for (const value of [undefined, NaN, [Infinity], { a: -Infinity, b: 1 }]) {
      expect(() => stringifyJson(value)).to.throw(TypeError);
    }
  });
});
