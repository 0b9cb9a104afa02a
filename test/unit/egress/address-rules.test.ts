import { expect } from 'chai';
import fc from 'fast-check';
import { judgeAddress, parseAllowList } from '../../../shared/egress/address-rules.ts';
import { parseHost } from '../../../shared/egress/host-rules.ts';
import type { AddressRange } from '../../../shared/egress/ip-address.ts';
import { formatAddressRange, parseIpAddress } from '../../../shared/egress/ip-address.ts';
import {
  ipv4Spelling,
  ipv6,
  METADATA,
  publicIpv4,
  REFUSED_IPV4,
  REFUSED_IPV6,
  refusedIpv4,
  sameHostForms,
  tunnelForms,
  within,
} from './address-forms.ts';

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
