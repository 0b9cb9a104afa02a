import { expect } from 'chai';
import fc from 'fast-check';
import { containerCovers, normaliseContainer } from '../../../shared/access/containers.ts';

describe('normaliseContainer', () => {
  for (const [path, normal] of [
    ['/', '/'],
    ['/pci/', '/pci/'],
    ['/pci/high/', '/pci/high/'],
    ['/PCI/High/', '/pci/high/'],
    ['/a-b_c/0/', '/a-b_c/0/'],
    ['/-/_/', '/-/_/'],
    [`/${'a'.repeat(100)}/`, `/${'a'.repeat(100)}/`],
    [`/${'a/'.repeat(20)}`, `/${'a/'.repeat(20)}`],
  ] as const) {
    it(`accepts ${path.slice(0, 30)}`, () => {
      expect(normaliseContainer(path)).to.equal(normal);
    });
  }

  for (const path of [
    '',
    '//',
    '///',
    'pci',
    'pci/high',
    '/pci',
    'pci/',
    '/pci//high/',
    '//pci/',
    '/pci//',
    '/pci/../bank/',
    '/./',
    '/../',
    '/%/',
    '/pci%2fhigh/',
    '/*/',
    '/pci/*',
    '/a b/',
    '/a\0b/',
    '/a\n/',
    '/pci/\n',
    '\n/pci/',
    '/é/',
    // Two letters that fold to ASCII elsewhere: K (Kelvin sign) and long s.
    '/\u212a/',
    '/\u017f/',
    '/\u2044/',
    '/a\\b/',
    "/a'b/",
    `/${'a'.repeat(101)}/`,
    `/${'a'.repeat(300)}/`,
    `/${'a/'.repeat(21)}`,
    `/${'a/'.repeat(1000)}`,
    `/${`${'a'.repeat(99)}/`.repeat(5)}`,
    '/'.repeat(1_000_000),
  ]) {
    it(`refuses ${JSON.stringify(path.slice(0, 30))}`, () => {
      expect(normaliseContainer(path)).to.equal(undefined);
    });
  }

  it('gives back its own results unchanged', () => {
    const path = fc
      .array(fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/), { maxLength: 10 })
      .map((segments) => `/${segments.map((segment) => `${segment}/`).join('')}`);
    fc.assert(
      fc.property(path, (given) => {
        const normal = normaliseContainer(given);
        expect(normal).to.equal(given.toLowerCase());
        expect(normaliseContainer(normal ?? '')).to.equal(normal);
      }),
    );
  });

  it('lets nothing through that is not made of slashes and plain segments', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('/', 'a', 'B', '.', '%', '_', '\0', ' ')), (pieces) => {
        const normal = normaliseContainer(pieces.join(''));
        if (normal !== undefined) expect(normal).to.match(/^\/([a-z0-9_-]+\/)*$/);
      }),
    );
  });
});

describe('containerCovers', () => {
  for (const [prefix, container, covers] of [
    ['/', '/', true],
    ['/', '/pci/high/', true],
    ['/pci/', '/pci/', true],
    ['/pci/', '/pci/high/', true],
    ['/pci/', '/pcix/', false],
    ['/pci/', '/pci-high/', false],
    ['/pci/high/', '/pci/', false],
    ['/pci/high/', '/pci/higher/', false],
    ['/pci/', '/', false],
    ['/pci/', '/a/pci/', false],
    ['/p_i/', '/pci/', false],
  ] as const) {
    it(`${prefix} ${covers ? 'covers' : 'does not cover'} ${container}`, () => {
      expect(containerCovers(prefix, container)).to.equal(covers);
    });
  }

  it('compares whole segments', () => {
    const segments = fc.array(fc.constantFrom('a', 'ab', 'b', 'a-b', '_'), { maxLength: 4 });
    const path = (parts: string[]): string => `/${parts.map((part) => `${part}/`).join('')}`;
    fc.assert(
      fc.property(segments, segments, (prefix, container) => {
        const expected = prefix.every((segment, index) => container[index] === segment);
        expect(containerCovers(path(prefix), path(container))).to.equal(expected);
      }),
    );
  });
});
