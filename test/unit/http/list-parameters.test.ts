import { expect } from 'chai';
import { ApiError } from '../../../shared/errors.ts';
import {
  readIds,
  readMetadataFilters,
  readPaging,
  readValues,
} from '../../../shared/http/list-parameters.ts';
import { parseQuery } from '../../../shared/http/query.ts';

function errorsOf(work: () => unknown): string[] {
  try {
    work();
  } catch (error) {
    if (error instanceof ApiError) return Object.keys(error.errors ?? {});
    throw error;
  }
  return [];
}

describe('readPaging', () => {
  const read = (raw: string, sizeMax?: number) => readPaging(parseQuery(raw), sizeMax);

  it('defaults to page 1 of 20', () => {
    expect(read('')).to.deep.equal({ page: 1, size: 20 });
  });

  it('accepts the bounds', () => {
    expect(read('page=10000&size=0')).to.deep.equal({ page: 10_000, size: 0 });
    expect(read('page=1&size=100')).to.deep.equal({ page: 1, size: 100 });
    expect(read('size=10000', 10_000).size).to.equal(10_000);
    expect(read('', 10)).to.deep.equal({ page: 1, size: 10 });
  });

  for (const value of [
    '0',
    '-1',
    '1.5',
    '1e9',
    'abc',
    '',
    '+1',
    ' 1',
    '0x1',
    '10001',
    '9'.repeat(400),
  ]) {
    it(`answers 400 errors.page to ${JSON.stringify(value.slice(0, 12))}`, () => {
      expect(errorsOf(() => read(`page=${encodeURIComponent(value)}`))).to.deep.equal(['page']);
    });
  }

  for (const value of ['101', '-1', '1e9', '1.0', 'abc', '']) {
    it(`answers 400 errors.size to ${JSON.stringify(value)}`, () => {
      expect(errorsOf(() => read(`size=${value}`))).to.deep.equal(['size']);
    });
  }

  it('answers 400 to a repeated parameter, and names both at once', () => {
    expect(errorsOf(() => read('page=1&page=2'))).to.deep.equal(['page']);
    expect(errorsOf(() => read('page=0&size=5&size=5'))).to.deep.equal(['page', 'size']);
  });
});

describe('readValues', () => {
  it('removes repetitions and keeps the order asked for', () => {
    expect(readIds(parseQuery('id=b&id=a&id=b'))).to.deep.equal(['b', 'a']);
    expect(readValues(parseQuery('type=card&type=bank'), 'type')).to.deep.equal(['card', 'bank']);
    expect(readIds(parseQuery('page=1'))).to.equal(undefined);
  });

  for (const raw of ['id[]=', 'id[]=a', 'id%5B%5D=a', 'id=', 'id=a&id=', `id=${'a'.repeat(401)}`]) {
    it(`answers 400 errors.id to ${raw.slice(0, 20)}`, () => {
      expect(errorsOf(() => readIds(parseQuery(raw)))).to.deep.equal(['id']);
    });
  }

  it('accepts 250 different ids, not 251', () => {
    const ids = (count: number) => Array.from({ length: count }, (_, i) => `id=${i}`).join('&');
    expect(readIds(parseQuery(ids(250)))).to.have.length(250);
    expect(errorsOf(() => readIds(parseQuery(ids(251))))).to.deep.equal(['id']);
  });
});

describe('readMetadataFilters', () => {
  const read = (raw: string) => [...readMetadataFilters(parseQuery(raw))];

  it('reads the three encodings that clients send', () => {
    const expected = [['userId', '9']];
    expect(read('metadata.userId=9')).to.deep.equal(expected);
    expect(read('metadata%5BuserId%5D=9')).to.deep.equal(expected);
    expect(read('metadata=%7B%22userId%22%3A%229%22%7D')).to.deep.equal(expected);
  });

  it('combines them, and the first of a repeated key wins', () => {
    expect(
      read('metadata.a=1&metadata[a]=2&metadata={"a":"3","b":"4"}&metadata.b=5'),
    ).to.deep.equal([
      ['a', '1'],
      ['b', '4'],
    ]);
  });

  it('takes keys literally', () => {
    expect(read('metadata.a.b=1&metadata[c][d]=2&metadata.__proto__=3')).to.deep.equal([
      ['a.b', '1'],
      ['c][d', '2'],
      ['__proto__', '3'],
    ]);
    expect(read('metadata={"__proto__":"1"}')).to.deep.equal([['__proto__', '1']]);
  });

  it('leaves other parameters alone', () => {
    expect(read('metadata_x=1&metadatas.a=1&page=2')).to.deep.equal([]);
  });

  for (const raw of [
    'metadata.=1',
    'metadata[]=1',
    'metadata[a=1',
    'metadata=',
    'metadata=x',
    'metadata=[]',
    'metadata=null',
    'metadata="a"',
    'metadata={"a":1}',
    'metadata={"a":null}',
    'metadata={"a":{"b":"c"}}',
    'metadata={"a":"1","a":"2"}',
    'metadata={"":"1"}',
    'metadata={"a":"\\u0000"}',
    `metadata=${'['.repeat(5000)}`,
    `metadata.${'k'.repeat(101)}=1`,
    `metadata.k=${'v'.repeat(501)}`,
    Array.from({ length: 51 }, (_, index) => `metadata.${index}=1`).join('&'),
  ]) {
    it(`answers 400 errors.metadata to ${raw.slice(0, 30)}`, () => {
      expect(errorsOf(() => read(raw))).to.deep.equal(['metadata']);
    });
  }
});
