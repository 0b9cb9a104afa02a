import { expect } from 'chai';
import fc from 'fast-check';
import { judgeAddress, parseAllowList } from '../../../shared/egress/address-rules.ts';
import { parseHost } from '../../../shared/egress/host-rules.ts';
import type { AddressRange, IpAddress } from '../../../shared/egress/ip-address.ts';
import {
  formatAddressRange,
  formatIpAddress,
  parseAddressRange,
  parseIpAddress,
  rangeContains,
} from '../../../shared/egress/ip-address.ts';

const NOTHING: readonly AddressRange[] = [];
const EVERYTHING = allowList('0.0.0.0/0, ::/0');

function allowList(text: string): readonly AddressRange[] {
  const ranges = parseAllowList(text);
  if (ranges === undefined) throw new Error('not an allow list');
  return ranges;
}

function verdictOn(text: string, allow = NOTHING): string {
  const host = parseHost(text);
  return host?.kind === 'address' ? judgeAddress(host.address, allow) : 'not an address';
}

function range(text: string): AddressRange {
  const parsed = parseAddressRange(text);
  if (parsed === undefined) throw new Error('not a range');
  return parsed;
}

/** Every address of a range, its first and last often. */
function within(text: string): fc.Arbitrary<IpAddress> {
  const { family, bits, prefix } = range(text);
  const size = 1n << BigInt((family === 4 ? 32 : 128) - prefix);
  const offset = fc.oneof(fc.constantFrom(0n, size - 1n), fc.bigInt({ min: 0n, max: size - 1n }));
  return offset.map((one) => ({ family, bits: bits + one }));
}

const REFUSED_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['255.255.255.255', '168.63.129.16'],
];
const REFUSED_IPV6 = [
  ...['::/128', '::1', '64:ff9b:1::/48', '100::/64', '2001::/32', '2001:2::/48', '2001:10::/28'],
  ...[
    '2001:20::/28',
    '2001:db8::/32',
    '2002::/16',
    '3fff::/20',
    '4000::/2',
    '5f00::/16',
    'fc00::/7',
  ],
  ...['fe80::/10', 'fec0::/10', 'ff00::/8', '::/96', '::ffff:0:0:0/96'],
];
const METADATA = [
  ...['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '192.0.0.192', '169.254.170.2'],
  ...['168.63.129.16', 'fd20:ce::254', 'fe80::a9fe:a9fe', '169.254.0.23', 'fd00:c1::a9fe:a9fe'],
];

const anyIpv4 = fc.bigInt({ min: 0n, max: 0xffff_ffffn });
const refusedIpv4 = fc.oneof(...REFUSED_IPV4.map(within));
const publicIpv4 = anyIpv4
  .map((bits): IpAddress => ({ family: 4, bits }))
  .filter((address) => !REFUSED_IPV4.some((one) => rangeContains(range(one), address)));

/** One number in the forms that the URL parser reads: decimal, hexadecimal, octal, with zeros. */
function numeral(value: bigint): fc.Arbitrary<string> {
  return fc.constantFrom(
    value.toString(),
    `0x${value.toString(16)}`,
    `0X00${value.toString(16).toUpperCase()}`,
    `0${value.toString(8)}`,
    `000${value.toString(8)}`,
  );
}

/** The spellings of an IPv4 address in a URL (WHATWG URL, "IPv4 parser"), in one to four parts. */
function ipv4Spelling({ bits }: IpAddress): fc.Arbitrary<string> {
  const parts = [bits >> 24n, (bits >> 16n) & 0xffn, (bits >> 8n) & 0xffn];
  return fc
    .record({ count: fc.integer({ min: 0, max: 3 }), dot: fc.constantFrom('.', '。', '．', '｡') })
    .chain(({ count, dot }) => {
      const rest = bits & ((1n << BigInt(32 - 8 * count)) - 1n);
      const numerals = [...parts.slice(0, count), rest].map(numeral);
      return fc.tuple(...numerals).map((texts) => texts.join(dot));
    })
    .chain((text) => fc.constantFrom(text, fullwidth(text), percent(text), `${text}.`));
}

const fullwidth = (text: string): string =>
  text.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));
const percent = (text: string): string => text.replace(/^\d/, (digit) => `%3${digit}`);

const hex = (bits: bigint): string => bits.toString(16);
const ipv6 = (bits: bigint): string => formatIpAddress({ family: 6, bits });
const high = (bits: bigint): bigint => bits >> 16n;
const low = (bits: bigint): bigint => bits & 0xffffn;

/** Forms that reach the very same IPv4 host. */
const sameHostForms = (bits: bigint): string[] => {
  const dotted = formatIpAddress({ family: 4, bits });
  const groups = `${hex(high(bits))}:${hex(low(bits))}`;
  return [
    `::ffff:${dotted}`,
    `[::FFFF:${groups}]`,
    `[0:0:0:0:0:ffff:${dotted}]`,
    `64:ff9b::${dotted}`,
    `[64:ff9b::${groups}]`,
    `[0064:ff9b:0:0:0:0:${dotted}]`,
  ];
};

/** Forms of tunnels: they need not reach the host, but must not get past its verdict. */
const tunnelForms = (bits: bigint): string[] => [
  `[::${formatIpAddress({ family: 4, bits })}]`,
  `[::ffff:0:${hex(high(bits))}:${hex(low(bits))}]`,
  ipv6((0x2002n << 112n) | (bits << 80n) | 1n),
  ipv6((0x2001_0000n << 96n) | (0x0808_0808n << 64n) | (bits ^ 0xffff_ffffn)),
  ipv6((0x2001_0000n << 96n) | (bits << 64n) | 0xf7f7_f7f7n),
  ipv6((0x2a00_1450n << 96n) | (0x5efen << 32n) | bits),
  ipv6((0x2a00_1450n << 96n) | (0x0200_5efen << 32n) | bits),
  `[64:ff9b:1::${hex(high(bits))}:${hex(low(bits))}]`,
  ipv6((0x64_ff9b_0001n << 80n) | (high(bits) << 64n) | (low(bits) << 40n)),
  ipv6((0x64_ff9b_0001n << 80n) | (((bits >> 24n) & 0xffn) << 64n) | ((bits & 0xff_ffffn) << 32n)),
  ipv6((0x64_ff9b_0001n << 80n) | (bits << 24n)),
];

describe('the addresses that may be reached', () => {
  it('are public ones, and no first, last or inner address of a special range', () => {
    for (const text of ['8.8.8.8', '1.1.1.1', '172.15.255.255', '172.32.0.0', '100.63.255.255']) {
      expect(verdictOn(text), text).to.equal('public');
    }
    for (const text of ['2606:4700::1111', '2a00:1450:4001::8a', '2001:200::1', '2620:fe::fe']) {
      expect(verdictOn(text), text).to.equal('public');
    }
    const refused = fc.oneof(...[...REFUSED_IPV4, ...REFUSED_IPV6].map(within));
    fc.assert(
      fc.property(refused, (address) => {
        expect(judgeAddress(address, NOTHING)).to.equal('refused');
      }),
    );
  });

  it('never include a refused IPv4 address in any spelling of the URL parser', () => {
    const spelled = refusedIpv4.chain((address) => ipv4Spelling(address));
    fc.assert(
      fc.property(spelled, (text) => {
        expect(verdictOn(text)).to.equal('refused');
      }),
      { numRuns: 500 },
    );
  });

  it('include every public IPv4 address in any spelling', () => {
    const spelled = publicIpv4.chain((address) => ipv4Spelling(address));
    fc.assert(
      fc.property(spelled, (text) => {
        expect(verdictOn(text)).to.equal('public');
      }),
      { numRuns: 500 },
    );
  });

  it('share the verdict of IPv4 when mapped or behind NAT64, also on the allow list', () => {
    const allow = allowList('10.0.0.0/8,127.0.0.0/8,8.0.0.0/6');
    const any = fc.oneof(refusedIpv4, publicIpv4, within('10.0.0.0/8'), within('8.0.0.0/6'));
    fc.assert(
      fc.property(any, fc.constantFrom(NOTHING, allow, EVERYTHING), (address, list) => {
        const verdict = judgeAddress(address, list);
        for (const form of sameHostForms(address.bits)) {
          expect(verdictOn(form, list), form).to.equal(verdict);
        }
      }),
    );
  });

  it('are not reached by wrapping a refused IPv4 address into a tunnel', () => {
    fc.assert(
      fc.property(refusedIpv4, ({ bits }) => {
        for (const form of tunnelForms(bits)) expect(verdictOn(form), form).to.equal('refused');
      }),
    );
  });

  it('leave out tunnels to public addresses too, except ISATAP, which is a public network', () => {
    fc.assert(
      fc.property(publicIpv4, ({ bits }) => {
        const verdicts = new Set(tunnelForms(bits).map((form) => verdictOn(form)));
        expect([...verdicts].sort()).to.deep.equal(['public', 'refused']);
        const isatap = ipv6((0x2a00_1450n << 96n) | (0x5efen << 32n) | bits);
        expect(verdictOn(isatap)).to.equal('public');
      }),
    );
  });
});

describe('the allow list', () => {
  it('opens its ranges and nothing beside them', () => {
    const allow = allowList(' 127.0.0.0/8 , 10.1.0.0/16,fd12::/16, 192.0.2.7');
    const opened = ['127.0.0.1', '127.255.255.255', '10.1.2.3', 'fd12::1', '192.0.2.7', '0x7f.1'];
    for (const text of opened) expect(verdictOn(text, allow), text).to.equal('allow_listed');
    for (const text of ['10.2.0.1', 'fd13::1', '192.0.2.8', '::1', '128.0.0.1%00']) {
      expect(verdictOn(text, allow), text).not.to.equal('allow_listed');
    }
    expect(verdictOn('8.8.8.8', allow)).to.equal('public');
  });

  it('opens every special range on demand, loopback of both families too', () => {
    for (const text of ['10.0.0.1', '127.0.0.1', '::1', 'fc00::1', '224.0.0.1', '240.0.0.1']) {
      expect(verdictOn(text, EVERYTHING), text).to.equal('allow_listed');
    }
    expect(verdictOn('64:ff9b:1::10.0.0.1', EVERYTHING)).to.equal('allow_listed');
  });

  it('never opens a metadata service, in whatever form, nor "this host"', () => {
    for (const text of [...METADATA, '0.0.0.0', '0', '::', '0.255.255.255']) {
      const exact = parseAllowList(text);
      expect(verdictOn(text, EVERYTHING), text).to.equal('refused');
      if (exact !== undefined) expect(verdictOn(text, exact), text).to.equal('refused');
      const address = parseIpAddress(text);
      if (address?.family !== 4 || address.bits >> 24n === 0n) continue;
      for (const form of [...sameHostForms(address.bits), ...tunnelForms(address.bits)]) {
        expect(verdictOn(form, EVERYTHING), form).to.equal('refused');
      }
    }
  });

  const malformed = [
    ...['', ',', '10.0.0.0/8,', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/8/8', '10.0.0.1/8', '10/8'],
    ...['010.0.0.0/8', '0x7f.0.0.0/8', '::1/129', 'fd00::1/8', 'localhost', '10.0.0.0/08', '*'],
    ...['fe80::1%eth0', '::ffff:10.0.0.0/8', '10.0.0.0 /8', 'any', '1'.repeat(1_000)],
    Array.from({ length: 101 }, (_, index) => `10.0.0.${index}`).join(','),
  ];
  it('is refused as a whole when a part of it is malformed', () => {
    for (const text of malformed) expect(parseAllowList(text), text).to.equal(undefined);
  });

  it('reads a range of mapped addresses as the IPv4 range', () => {
    expect(allowList('::ffff:10.0.0.0/104').map(formatAddressRange)).to.deep.equal(['10.0.0.0/8']);
  });
});

describe('reading an address', () => {
  const anyIpv6 = fc.bigInt({ min: 0n, max: (1n << 128n) - 1n });

  it('gives every spelling of an IPv6 address the same value', () => {
    fc.assert(
      fc.property(anyIpv6, fc.integer({ min: 0, max: 6 }), (bits, zeroAt) => {
        // A hole of two groups, so that compression has something to do.
        const holed = bits & ~(0xffff_ffffn << BigInt(16 * zeroAt));
        const groups = ipv6(holed).split(':');
        const at = 6 - zeroAt;
        const compressed = `${groups.slice(0, at).join(':')}::${groups.slice(at + 2).join(':')}`;
        const address = parseIpAddress(ipv6(holed));
        const padded = groups.map((group) => group.padStart(4, '0').toUpperCase()).join(':');
        const tail = formatIpAddress({ family: 4, bits: holed & 0xffff_ffffn });
        const dotted = `${groups.slice(0, 6).join(':')}:${tail}`;
        for (const text of [compressed, padded, dotted, new URL(`http://[${padded}]/`).hostname]) {
          expect(parseIpAddress(text.replace(/[[\]]/g, '')), text).to.deep.equal(address);
        }
      }),
    );
  });

  const malformed = [
    ...[
      '',
      ':',
      ':::',
      '1::2::3',
      '::g',
      '1:2:3:4:5:6:7',
      '1:2:3:4:5:6:7:8:9',
      '1:2:3:4:5:6:7::8:9',
    ],
    ...[
      '::12345',
      '1.2.3.4::',
      '::1.2.3.4:5',
      '::1.2.3',
      '::1.2.3.256',
      '::01.2.3.4',
      'fe80::1%lo',
    ],
    ...[
      '1.2.3',
      '1.2.3.4.5',
      '01.2.3.4',
      '1.2.3.256',
      '1.2.3.4 ',
      ' ::1',
      '[::1]',
      '0x7f.0.0.1',
      '-1',
    ],
    ...['１.2.3.4', '::ffff:1.2.3.4.5', ':1::', '1:::2', '1:2:3:4:5:6:1.2.3.4:8', '0'.repeat(500)],
  ];
  it('refuses what is not exactly an address', () => {
    for (const text of malformed) expect(parseIpAddress(text), text).to.equal(undefined);
  });

  it('agrees with the URL parser about what is an IPv6 address', () => {
    const piece = fc.constantFrom(':', '::', '0', '1', 'ffff', '00001', '1.2.3.4', 'g', '.', '%');
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        if (!text.includes(':')) return;
        expect(parseIpAddress(text) !== undefined, text).to.equal(
          URL.canParse(`http://[${text}]/`),
        );
      }),
      { numRuns: 2_000 },
    );
  });
});
