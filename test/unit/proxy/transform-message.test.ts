/** Messages as transforms see them, and what is made of what they return (facts 10.3). */
import { expect } from 'chai';
import { bodyKind } from '../../../data-plane/proxy/body-text.ts';
import { TransformError } from '../../../data-plane/proxy/transform-failure.ts';
import {
  readMessage,
  type SeenBody,
  seenJson,
  seenText,
} from '../../../data-plane/proxy/transform-message.ts';

const FORM = 'application/x-www-form-urlencoded';
const BYTES = Buffer.from([0x00, 0x41, 0xe9, 0xff, 0xfe]);

const seen = (body: Buffer | string, type?: string): unknown =>
  JSON.parse(seenText(Buffer.from(body as string), type).json);

/** The message that `result` makes of one with this body and these headers. */
function message(
  result: unknown,
  {
    body = Buffer.from('{"a": 1.0}') as Buffer,
    headers = ['Content-Type', 'application/json'],
    as = seenJson('{"a": 1.0}') as SeenBody,
  } = {},
): { body: string; headers: readonly string[] } {
  const text = typeof result === 'string' ? result : JSON.stringify(result);
  const made = readMessage(text, { body, headers }, as);
  return { body: made.body.toString(), headers: made.headers };
}

function refused(result: unknown): TransformError {
  try {
    message(result);
  } catch (error) {
    if (error instanceof TransformError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('the kind of a body', () => {
  const cases: [string | undefined, string][] = [
    ['application/json', 'json'],
    ['Application/JSON ; charset=latin1', 'json'],
    ['application/vnd.api+json', 'json'],
    ['application/x-www-form-urlencoded;charset=UTF-8', 'form'],
    ['application/jsonp', 'other'],
    ['application/json, text/plain', 'other'],
    ['text/json', 'other'],
    ['multipart/form-data; boundary=application/json', 'other'],
    ['', 'other'],
    [undefined, 'other'],
  ];
  for (const [type, kind] of cases) {
    it(`of ${type} is ${kind}`, () => expect(bodyKind(type)).to.equal(kind));
  }
});

describe('a JSON body that is a text', () => {
  const body = Buffer.from('"caf\\u00e9"');
  const as = seenJson(body.toString());

  it('stays JSON when the transform returns it as it was', () => {
    expect(message({ body: 'café' }, { body, as }).body).to.equal('"caf\\u00e9"');
    const headers = { 'Content-Type': 'text/plain' };
    expect(message({ body: 'café', headers }, { body, as }).body).to.equal('café');
  });

  it('is the text that it is changed to', () => {
    expect(message({ body: 'tea' }, { body, as }).body).to.equal('tea');
  });
});

describe('a body as a transform sees it', () => {
  it('is null when there is none, text otherwise', () => {
    expect(seen('', 'text/plain')).to.equal(null);
    expect(seen('', FORM)).to.equal(null);
    expect(seen('<a>é</a>', 'text/xml')).to.equal('<a>é</a>');
    expect(seen('{"a":1}')).to.equal('{"a":1}');
  });

  it('is an object for a form, with lists of what is repeated', () => {
    expect(seen('a=1&b=x+%C3%A9&a=2&c&a=3&=', FORM)).to.deep.equal({
      ...{ a: ['1', '2', '3'], b: 'x é', c: '', '': '' },
    });
    expect(seen('?a=%zz&__proto__=x&__proto__=y', FORM)).to.deep.equal(
      JSON.parse('{"?a":"%zz","__proto__":["x","y"]}'),
    );
  });

  it('is one character per byte when it is no text', () => {
    expect(seen(BYTES, 'image/png')).to.equal('\0Aéÿþ');
    expect(seen(BYTES, FORM)).to.equal('\0Aéÿþ');
  });
});

describe('the message that a transform returned', () => {
  it('keeps what is missing, the body byte for byte', () => {
    expect(message({ headers: { a: 'b' } })).to.deep.equal({
      ...{ body: '{"a": 1.0}', headers: ['a', 'b'] },
    });
    expect(message({ body: { a: 2 } })).to.deep.equal({
      ...{ body: '{"a":2}', headers: ['Content-Type', 'application/json'] },
    });
    expect(message({ body: 'x', headers: null }).headers).to.have.length(2);
  });

  it('has values as JSON, texts as they are, null as no body', () => {
    for (const value of [{ a: [1] }, [1, 2], 5, false]) {
      expect(message({ body: value }).body).to.equal(JSON.stringify(value));
    }
    expect(message({ body: 'a=1' }).body).to.equal('a=1');
    expect(message({ body: null }).body).to.equal('');
  });

  it('keeps a body that was null when null comes back', () => {
    const given = { body: Buffer.from(' null '), as: seenJson(' null '.trim()) };
    expect(message({ body: null }, given).body).to.equal(' null ');
    const none = { body: Buffer.alloc(0), as: seenText(Buffer.alloc(0), undefined) };
    expect(message({ body: null }, none).body).to.equal('');
  });

  it('keeps names twice, prototypes and numbers of the text that the script printed', () => {
    const body = '{"__proto__":{"x":1},"a":1e21,"n":0.1}';
    expect(message(`{"body":${body}}`).body).to.equal(body);
  });

  it('is a form where the headers that go out say so', () => {
    const headers = { 'content-type': FORM };
    const body = { a: 'x &', b: [1, 'ü', null], c: { d: 1 }, __proto__: null };
    expect(message({ body, headers }).body).to.equal('a=x+%26&b=1&b=%C3%BC&b=&c=%7B%22d%22%3A1%7D');
    expect(message({ body }, { headers: ['CONTENT-TYPE', FORM] }).body).to.match(/^a=x/);
    expect(message({ body: { a: 1 }, headers: { 'Content-Type': 'text/x' } }).body).to.equal(
      '{"a":1}',
    );
  });

  it('says that a value is JSON when nothing says what it is', () => {
    expect(message({ body: { a: 1 }, headers: { b: 'c' } }).headers).to.deep.equal([
      ...['b', 'c', 'content-type', 'application/json'],
    ]);
    expect(message({ body: 'x', headers: { b: 'c' } }).headers).to.deep.equal(['b', 'c']);
  });

  it('has bytes again where bytes were seen', () => {
    const as = seenText(BYTES, 'image/png');
    const original = { body: BYTES, headers: [] };
    const same = readMessage(JSON.stringify({ body: JSON.parse(as.json) }), original, as);
    expect(same.body).to.deep.equal(BYTES);
    const wider = readMessage('{"body":"é€"}', original, as);
    expect(wider.body.toString()).to.equal('é€');
  });

  it('may be inside raw, as older code returns it', () => {
    expect(message({ raw: { body: 'x', headers: { a: 'b' } } })).to.deep.equal({
      ...{ body: 'x', headers: ['a', 'b'] },
    });
    expect(message({ raw: { body: 'x' }, headers: { a: 'b' } }).body).to.equal('{"a": 1.0}');
  });

  for (const result of [
    'null',
    '[]',
    '"x"',
    '1',
    '{}',
    '{"raw":{}}',
    '{"raw":"x"}',
    '{"Body":1}',
  ]) {
    it(`is refused when it is none: ${result}`, () => {
      const { status, errors } = refused(result).toProblem();
      expect({ status, errors }).to.deep.equal({
        status: 500,
        errors: { error: ['The transform must return an object with body, headers or both.'] },
      });
    });
  }

  it('is refused when it is no JSON, whatever a broken sandbox says', () => {
    for (const text of ['', '{', '{"body":1}}', '{"body":1},"x":{', '{"body":\u0001}']) {
      expect(refused(text).message).to.equal('Reactor Runtime Error');
    }
    const deep = `{"body":${'['.repeat(600)}${']'.repeat(600)}}`;
    expect(JSON.stringify(refused(deep).errors)).to.contain('nested deeper than 512 levels');
  });

  it('is refused when a form of it has more than 10,000 fields, or headers are huge', () => {
    const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, index) => [`f${index}`, 1]));
    const headers = { 'content-type': FORM };
    expect(refused({ body: many, headers }).status).to.equal(500);
    expect(refused({ headers: many }).status).to.equal(500);
  });
});
