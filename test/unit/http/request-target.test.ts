import { expect } from 'chai';
import { ApiError } from '../../../shared/errors.ts';
import { decodeSegment, readTarget } from '../../../shared/http/request-target.ts';

function read(url: string) {
  const target = { path: '', query: '' };
  const refusal = readTarget(url, target);
  return { refusal, ...target };
}

describe('readTarget', () => {
  const accepted: [string, string, string][] = [
    ['/', '/', ''],
    ['/tokens', '/tokens', ''],
    ['/tokens/', '/tokens', ''],
    ['/tokens/?page=1', '/tokens', 'page=1'],
    ['/?', '/', ''],
    ['/tokens/a%20b', '/tokens/a%20b', ''],
    ['/tokens/%252e%252e', '/tokens/%252e%252e', ''],
    ['/tokens/...', '/tokens/...', ''],
    ['/tokens/.a/..b/c.', '/tokens/.a/..b/c.', ''],
    ['/proxy/x?u=http://y/../z//&q=100%', '/proxy/x', 'u=http://y/../z//&q=100%'],
    ['/a?b?c', '/a', 'b?c'],
  ];
  for (const [url, path, query] of accepted) {
    it(`reads ${url}`, () => {
      expect(read(url)).to.deep.equal({ refusal: undefined, path, query });
    });
  }

  const refused: [string, string, boolean][] = [
    ['', 'bad_request', true],
    ['*', 'bad_request', true],
    ['tokens', 'bad_request', true],
    ['http://localhost/tokens', 'bad_request', true],
    ['//', 'not_found', false],
    ['//evil.example/tokens', 'not_found', false],
    ['/tokens//', 'not_found', false],
    ['/tokens//a', 'not_found', false],
    ['/.', 'bad_request', true],
    ['/..', 'bad_request', true],
    ['/tokens/../applications', 'bad_request', true],
    ['/tokens/./a', 'bad_request', true],
    ['/tokens/%2e%2e/applications', 'bad_request', true],
    ['/tokens/.%2E', 'bad_request', true],
    ['/tokens/%2e/?a', 'bad_request', true],
    ['/tokens%2fa', 'bad_request', true],
    ['/tokens%2Fa', 'bad_request', true],
    ['/tokens%5ca', 'bad_request', true],
    ['/tokens/a%00', 'bad_request', true],
    ['/tokens/%', 'bad_request', true],
    ['/tokens/%4', 'bad_request', true],
    ['/tokens/%4?1', 'bad_request', true],
    ['/tokens/%zz', 'bad_request', true],
    ['/tokens/%G0', 'bad_request', true],
    ['/tokens\\a', 'bad_request', true],
    ['/tokens#a', 'bad_request', true],
    ['/tokens?a#b', 'bad_request', true],
    ['/tokens/a b', 'bad_request', true],
    ['/tokens?a b', 'bad_request', true],
    ['/tokens/\u0001', 'bad_request', true],
    ['/tokens/\u007f', 'bad_request', true],
    ['/tokens/caf\u00e9', 'bad_request', true],
    ['/tokens?caf\u00e9', 'bad_request', true],
  ];
  for (const [url, code, close] of refused) {
    it(`refuses ${JSON.stringify(url)}`, () => {
      expect(read(url).refusal).to.include({ code, close });
    });
  }

  it('accepts 8,192 bytes and answers 414 to one more', () => {
    expect(read(`/${'a'.repeat(8191)}`).refusal).to.equal(undefined);
    expect(read(`/${'a'.repeat(8192)}`).refusal).to.include({ code: 'uri_too_long', close: true });
  });

  it('accepts 1,000 query parameters and refuses 1,001', () => {
    expect(read(`/tokens?${'a&'.repeat(999)}`).refusal).to.equal(undefined);
    expect(read(`/tokens?${'a&'.repeat(1000)}`).refusal).to.include({ code: 'bad_request' });
  });
});

describe('decodeSegment', () => {
  it('decodes once', () => {
    expect(decodeSegment('plain')).to.equal('plain');
    expect(decodeSegment('a%20b%C3%A9+')).to.equal('a b\u00e9+');
    expect(decodeSegment('%252e')).to.equal('%2e');
  });

  for (const segment of ['%ff', '%c0%ae', '%ed%a0%80', '%f4%90%80%80', '%c3', '%']) {
    it(`answers 400 to ${segment}, which is not UTF-8`, () => {
      expect(() => decodeSegment(segment))
        .to.throw(ApiError)
        .with.property('code', 'bad_request');
    });
  }
});
