/** Headers that transforms see and return (attacks C-13 row 199, C-14 row 224). */
import { expect } from 'chai';
import fc from 'fast-check';
import { withoutHeader } from '../../../data-plane/proxy/headers.ts';
import { TransformError } from '../../../data-plane/proxy/transform-failure.ts';
import { headersText, readHeaders } from '../../../data-plane/proxy/transform-headers.ts';

const seen = (...flat: string[]): unknown => JSON.parse(headersText(flat));
const refused = (headers: unknown): TransformError => {
  try {
    readHeaders(headers);
  } catch (error) {
    if (error instanceof TransformError) return error;
    throw error;
  }
  throw new Error('they were not refused');
};

describe('headers of a message, as a transform sees them', () => {
  it('keep the casing of their names and join what is repeated', () => {
    expect(seen('X-Key', 'a', 'ACCEPT', 'b', 'x-key', 'c')).to.deep.equal({
      'X-Key': 'a, c',
      ACCEPT: 'b',
    });
    expect(seen('Cookie', 'a=1', 'cookie', 'b=2')).to.deep.equal({ Cookie: 'a=1; b=2' });
  });

  it('have cookies that are set as a list, one or more', () => {
    expect(seen('Set-Cookie', 'a=1; Expires=Wed, 1 Jan 2031')).to.deep.equal({
      'Set-Cookie': ['a=1; Expires=Wed, 1 Jan 2031'],
    });
    expect(seen('set-cookie', 'a', 'Set-Cookie', 'b')).to.deep.equal({ 'set-cookie': ['a', 'b'] });
  });

  it('may be named like prototypes', () => {
    const headers = seen('__proto__', 'a', 'constructor', 'b', '__proto__', 'c') as object;
    expect(Object.entries(headers)).to.deep.equal([
      ['__proto__', 'a, c'],
      ['constructor', 'b'],
    ]);
  });
});

describe('headers that a transform returned', () => {
  it('are texts, numbers and booleans; null is none', () => {
    const headers = { 'X-A': 'b', 'x-n': 5, 'x-t': true, 'x-none': null, 'x-empty': '' };
    const expected = ['X-A', 'b', 'x-n', '5', 'x-t', 'true', 'x-empty', ''];
    expect(readHeaders(headers)).to.deep.equal(expected);
  });

  it('are lists only where transforms are given lists', () => {
    expect(readHeaders({ 'Set-Cookie': ['a', 'b'] })).to.deep.equal([
      'Set-Cookie',
      'a',
      'Set-Cookie',
      'b',
    ]);
    expect(readHeaders({ 'Set-Cookie': [] })).to.deep.equal([]);
    for (const headers of [{ accept: ['a', 'b'] }, { 'set-cookie': [['a']] }, { a: [] }]) {
      expect(refused(headers).status).to.equal(500);
    }
  });

  it('replace one of another casing: the last counts', () => {
    const headers = { 'Content-Type': 'text/plain', x: '1', 'content-type': 'application/json' };
    expect(readHeaders(headers)).to.deep.equal(['content-type', 'application/json', 'x', '1']);
  });

  it('never frame the message, name its destination or speak to us', () => {
    const theirs = Object.fromEntries(
      [
        ...['Host', 'HOST', 'content-length', 'Content-Length', 'Transfer-Encoding', 'TE'],
        ...['trailer', 'connection', 'Keep-Alive', 'proxy-connection', 'Proxy-Authorization'],
        ...['upgrade', 'Expect', 'BT-API-KEY', 'bt-trace-id', 'Bt-Proxy-Destination-Status'],
      ].map((name) => [name, 'x']),
    );
    expect(readHeaders({ ...theirs, authorization: 'kept' })).to.deep.equal([
      ...['authorization', 'kept'],
    ]);
    // Not even looked at.
    expect(readHeaders({ 'content-length': { a: 1 }, host: ['\r\n'] })).to.deep.equal([]);
  });

  const invalid: [string, unknown][] = [
    ['a list of headers', [['a', 'b']]],
    ['a text', 'a: b'],
    ['a number', 1],
    ['an object as a value', { a: { b: 1 } }],
    ['a line break', { a: 'b\r\nx: y' }],
    ['a bare line feed', { a: 'b\nx: y' }],
    ['a NUL', { a: 'b\0' }],
    ['a character that is no byte', { a: '€' }],
    ['a name with a space', { 'a b': 'c' }],
    ['a name with a colon', { ':authority': 'evil.example' }],
    ['a name with a line break', { 'a\r\nb': 'c' }],
    ['no name', { '': 'a' }],
    ['a name that is no ASCII', { ä: 'b' }],
  ];
  for (const [what, headers] of invalid) {
    it(`are refused for ${what}, without repeating it`, () => {
      const error = refused(headers);
      expect(error.toProblem()).to.deep.equal({
        title: 'One or more validation errors occurred.',
        status: 500,
        detail: 'Reactor Runtime Error',
        errors: { error: ['The transform returned an invalid header.'] },
      });
    });
  }

  it('may be named like prototypes', () => {
    const headers = JSON.parse('{"__proto__":"a","constructor":"b"}') as unknown;
    expect(readHeaders(headers)).to.deep.equal(['__proto__', 'a', 'constructor', 'b']);
    expect(refused(JSON.parse('{"__proto__":{"x":"y"}}')).status).to.equal(500);
  });

  it('are refused above 64 KiB in all', () => {
    const entries = Array.from({ length: 70 }, (_, index) => [`x-${index}`, 'v'.repeat(1_000)]);
    expect(refused(Object.fromEntries(entries)).errors).to.deep.equal({
      error: ['The headers of the transform are too large.'],
    });
  });

  it('never hold what would be another header, whatever they are', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), (headers) => {
        let flat: string[];
        try {
          flat = readHeaders(headers);
        } catch (error) {
          expect(error).to.be.instanceOf(TransformError);
          return;
        }
        const names = flat.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
        expect(names.filter((name) => name === 'host' || name.startsWith('bt-'))).to.be.empty;
        for (const text of flat) expect(text).to.match(/^[\t\x20-\x7e\x80-\xff]*$/);
      }),
    );
  });
});

describe('withoutHeader', () => {
  it('leaves out a name in any casing, with its values', () => {
    const flat = ['Content-Encoding', 'gzip', 'a', 'content-encoding', 'content-encoding', 'br'];
    expect(withoutHeader(flat, 'content-encoding')).to.deep.equal(['a', 'content-encoding']);
  });
});
