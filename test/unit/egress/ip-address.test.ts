import { expect } from 'chai';
import fc from 'fast-check';
import { formatIpAddress, parseIpAddress } from '../../../shared/egress/ip-address.ts';
import { ipv6 } from './address-forms.ts';

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
