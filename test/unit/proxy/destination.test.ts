/** Paths and queries of destinations: whatever a caller sends, the base is never left. */
import { posix } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  isWithinBase,
  mergeQueries,
  readDestination,
  targetAt,
} from '../../../data-plane/proxy/destination.ts';
import { ApiError } from '../../../shared/errors.ts';

const BASE = '/base/of/it';
const destination = readDestination(`https://dest.example${BASE}//?own=1`);

/** As a destination might read a path: decoded up to three times, normalised, parameters cut off. */
function readings(target: string): string[] {
  const all: string[] = [];
  let path = target.split('?', 1)[0] ?? '';
  for (let times = 0; times <= 3; times += 1) {
    const slashed = path.replaceAll('\\', '/');
    const withoutParameters = slashed.replace(/;[^/]*/g, '');
    const byStandard = slashed.replaceAll(/[\t\n\r]/g, '');
    all.push(slashed, withoutParameters, slashed.split('\0')[0] ?? '', byStandard);
    path = path.replace(/%([0-9a-f]{2})/gi, (_, byte: string) =>
      String.fromCharCode(Number.parseInt(byte, 16)),
    );
  }
  return all;
}

describe('the target at a destination', () => {
  it('is the base, the suffix and both queries', () => {
    const target = (path: string, query: string) => targetAt(destination, { path, query });
    expect(target('', '')).to.equal(`${BASE}?own=1`);
    expect(target('/a/', '?x=1&x=2')).to.equal(`${BASE}/a/?own=1&x=1&x=2`);
    const root = readDestination('https://dest.example');
    expect(targetAt(root, { path: '', query: '' })).to.equal('/');
    expect(targetAt(root, { path: '', query: '?' })).to.equal('/');
    expect(root.host).to.equal('dest.example');
    expect(mergeQueries('?', '?a')).to.equal('?a');
  });

  it('is within the base for every reader, for whatever is accepted', () => {
    const piece = fc.constantFrom(
      ...[
        '.',
        '..',
        '/',
        '\\',
        '%2e',
        '%2E',
        '%2f',
        '%5c',
        '%252e',
        '%252f',
        '%25252e',
        ';',
        '%3b',
      ],
      ...[
        'a',
        '%00',
        '%20',
        '%09',
        '%0a',
        '%250d',
        '?',
        '#',
        '%3f',
        '%23',
        '%c0%ae',
        '%u002e',
        'b=c',
        '@',
        ':',
        '%',
        '%2',
      ],
    );
    const suffix = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`);
    let accepted = 0;
    fc.assert(
      fc.property(suffix, (path) => {
        let target: string;
        try {
          target = targetAt(destination, { path, query: '' });
        } catch (error) {
          expect(error).to.be.instanceOf(ApiError);
          return;
        }
        accepted += 1;
        const url = new URL(target, 'https://dest.example');
        expect(url.origin).to.equal('https://dest.example');
        expect(url.pathname.startsWith(BASE)).to.equal(true);
        for (const reading of readings(target)) {
          const normal = posix.normalize(reading);
          expect(normal === BASE || normal.startsWith(`${BASE}/`), reading).to.equal(true);
        }
      }),
      { numRuns: 20_000 },
    );
    expect(accepted).to.be.greaterThan(1_000);
  });

  it('refuses what would be another host, or no request line', () => {
    const refused = [
      ...['@evil.example', 'x', '//evil.example', '/\\evil.example', 'https://evil.example/'],
      ...['/a b', '/a\r\nHost: x', '/a\0', '/é', '/a#b', '/a?b', '/'.repeat(3)],
    ];
    for (const path of refused) expect(isWithinBase(path), path).to.equal(false);
    const query = '?a b';
    expect(() => targetAt(destination, { path: '', query })).to.throw(ApiError);
    expect(() => targetAt(destination, { path: `/${'a'.repeat(13_000)}`, query: '' })).to.throw(
      ApiError,
    );
  });
});
