import { expect } from 'chai';
import fc from 'fast-check';
import { parseAllowList } from '../../../shared/egress/address-rules.ts';
import {
  DESTINATION_PROBLEMS,
  DESTINATION_URL_LENGTH_MAX,
  destinationProblems,
} from '../../../shared/egress/destination-url.ts';
import { judgeName, parseHost } from '../../../shared/egress/host-rules.ts';
import type { AddressRange } from '../../../shared/egress/ip-address.ts';

const NOTHING: readonly AddressRange[] = [];
const LOOPBACK = parseAllowList('127.0.0.0/8') ?? NOTHING;
const EVERYTHING = parseAllowList('0.0.0.0/0,::/0') ?? NOTHING;

function expectProblem(texts: readonly string[], problem: string, allow = NOTHING): void {
  for (const text of texts) expect(destinationProblems(text, allow), text).to.include(problem);
}

function expectGood(texts: readonly string[], allow = NOTHING): void {
  for (const text of texts) expect(destinationProblems(text, allow), text).to.deep.equal([]);
}

describe('a destination URL without an allow list', () => {
  it('is https, with a DNS name', () => {
    expectGood([
      'https://dest.example',
      'https://dest.example/api/?a=b',
      'HTTPS://DEST.Example:8443',
    ]);
    expectGood([
      'https://xn--bcher-kva.example/',
      'https://bücher.example/',
      'https://a_b.example',
    ]);
  });

  const loopback = [
    ...['2130706433', '0x7f000001', '0177.0.0.1', '017700000001', '127.1', '0x7f.1', '127.0.0.1.'],
    ...['①②⑦.0.0.1', '１２７.0.0.1', '127。0。0。1', '127．0．0．1', '%31%32%37.0.0.1', '%30x7f.1'],
    ...['[::1]', '[::ffff:127.0.0.1]', '[::ffff:a00:1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]'],
    ...['0', '0.0.0.0', '[::]', '[::0]', '0x', '00000'],
  ];
  it('is not this machine in any spelling (C-13 rows 179-182)', () => {
    for (const host of loopback) {
      expectProblem([`http://${host}/`, `https://${host}/`, `https://${host}:8443/x`], 'host');
    }
  });

  const special = [
    ...[
      '10.0.0.1',
      '172.16.0.1',
      '192.168.0.1',
      '100.64.0.1',
      '198.18.0.1',
      '192.0.2.1',
      '224.0.0.1',
    ],
    ...['240.0.0.1', '255.255.255.255', '[fc00::1]', '[fe80::1]', '[fec0::1]', '[2002:7f00:1::]'],
    ...['8.8.8.8', '[2606:4700::1111]'],
  ];
  it('is no literal address, not even a public one (rows 182, 185; facts 10.1)', () => {
    expectProblem(
      special.map((host) => `https://${host}/`),
      'host',
    );
  });

  const names = [
    ...[
      'localhost',
      'localhost.',
      'LOCALHOST',
      'foo.localhost',
      'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ',
      'sallyport',
      'postgres',
    ],
    ...[
      'api.default.svc',
      'api.default.svc.cluster.local',
      'router.lan',
      'db.internal',
      'x.home.arpa',
    ],
    ...['dest.example.', 'a..example', '-a.example', 'a-.example', `${'a'.repeat(64)}.example`],
    ...['*.example', 'a,b.example', `${'a.'.repeat(126)}aa`],
  ];
  it('is no name of this machine or network, and no malformed name (row 186)', () => {
    expectProblem(
      names.map((host) => `https://${host}/`),
      'host',
    );
  });

  it('uses no other scheme and has both slashes (row 194)', () => {
    expectProblem(['http://dest.example/', 'HTTP://dest.example'], 'scheme');
    const forms = [
      ...['file:///etc/passwd', 'ftp://dest.example', 'gopher://dest.example', 'data:text/plain,a'],
      ...[
        'javascript:alert(1)',
        '//dest.example',
        'http:dest.example',
        'https:dest.example',
        'dest',
      ],
      ...[
        'https:/dest.example',
        'https:///dest.example',
        'https:\\\\dest.example',
        'https://',
        '/a',
      ],
      ...[
        'wss://dest.example',
        'https://?a',
        'https://#a',
        'https:// /',
        'view-source:https://a.b',
      ],
    ];
    expectProblem(forms, 'form');
  });

  it('has no user name or password, and is judged by the host that is really meant (row 192)', () => {
    const userinfo = [
      ...['https://user:pass@dest.example', 'https://user@dest.example', 'https://@dest.example'],
      ...[
        'https://:@dest.example',
        'https://127.0.0.1%2f@dest.example',
        'https://dest.example@127.0.0.1',
      ],
    ];
    expectProblem(userinfo, 'userinfo');
    const others = ['\\@127.0.0.1', '#@127.0.0.1', '?@127.0.0.1', '/@127.0.0.1'];
    expectGood(others.map((rest) => `https://dest.example${rest}`));
    expectProblem(
      others.map(() => 'https://127.0.0.1\\@dest.example'),
      'host',
    );
  });

  it('has no port of another service (row 195)', () => {
    const ports = [22, 25, 6379, 5432, 3306, 11211, 2375, 27017, 0];
    expectProblem(
      ports.map((port) => `https://dest.example:${port}/`),
      'port',
    );
    expectProblem(['https://dest.example:65536/', 'https://dest.example:-1/'], 'form');
    expectGood([443, 80, 8443, 8080, 3000, 65535].map((port) => `https://dest.example:${port}/`));
  });

  it('contains nothing that the URL parser would drop', () => {
    const dropped = ['\t', '\n', '\r', ' ', '\0', '\x1f', '\x7f'];
    expectProblem(
      dropped.flatMap((one) => [
        `https://dest.exa${one}mple/`,
        `${one}https://dest.example`,
        `https://dest.example/${one}`,
      ]),
      'form',
    );
  });

  it('has 1 to 400 characters, or as many as its caller allows', () => {
    const url = (length: number): string => 'https://dest.example/'.padEnd(length, 'a');
    expectGood([url(DESTINATION_URL_LENGTH_MAX)]);
    expectProblem(['', url(DESTINATION_URL_LENGTH_MAX + 1), url(3_000)], 'length');
    expect(destinationProblems(url(3_000), NOTHING, 3_000)).to.deep.equal([]);
  });
});

describe('a destination URL with an allow list', () => {
  it('may be http, a literal address and any port within the ranges', () => {
    expectGood(['http://127.0.0.1:5432/a', 'https://127.0.0.9/', 'http://0x7f.1:22/'], LOOPBACK);
    expectGood(
      ['http://localhost:3000/a', 'https://LOCALHOST:8443', 'http://a.localhost'],
      LOOPBACK,
    );
    expectGood(['http://[::ffff:127.0.0.1]:8080/'], LOOPBACK);
    expectGood(['http://8.8.8.8:53/', 'http://[fd00::1]/'], EVERYTHING);
  });

  it('is judged as without one outside of the ranges', () => {
    expectProblem(['https://10.0.0.1/', 'https://[::1]/', 'https://8.8.8.8/'], 'host', LOOPBACK);
    expectProblem(['http://dest.example/', 'http://10.0.0.1/'], 'scheme', LOOPBACK);
    expectProblem(['https://dest.example:5432/'], 'port', LOOPBACK);
    expectProblem(['http://dest.example/'], 'scheme', EVERYTHING);
    const elsewhere = parseAllowList('10.0.0.0/8') ?? NOTHING;
    expectProblem(['http://localhost:3000/'], 'host', elsewhere);
  });

  it('may name a host of the own network, which the guard judges when it connects', () => {
    expectGood(['http://payment-stub:8080/', 'https://pay.internal/'], LOOPBACK);
  });

  it('is never a metadata service nor "this host", nor port 0 (row 184)', () => {
    const hosts = [
      ...['169.254.169.254', '[fd00:ec2::254]', '100.100.100.200', '192.0.0.192', '2852039166'],
      ...['metadata.google.internal', 'METADATA.google.internal', 'metadata', 'instance-data'],
      ...[
        'a.metadata.google.internal',
        'metadata.google.internal.',
        '[::ffff:a9fe:a9fe]',
        '0',
        '[::]',
      ],
      ...['[64:ff9b::a9fe:a9fe]', '0xA9FEA9FE', '0251.0376.0251.0376'],
    ];
    const urls = hosts.flatMap((host) => [`http://${host}/latest`, `https://${host}/`]);
    expectProblem(urls, 'host', EVERYTHING);
    expectProblem(['http://127.0.0.1:0/'], 'port', LOOPBACK);
  });

  it('still has no user name and no dropped characters', () => {
    expectProblem(['http://a:b@127.0.0.1/'], 'userinfo', LOOPBACK);
    expectProblem(['http://127.0.0.1\t/'], 'form', LOOPBACK);
  });
});

describe('the problems of a destination URL', () => {
  it('are from a closed list with a message each, whatever the text', () => {
    const piece = fc.constantFrom(
      ...['https://', 'http://', 'ftp:', 'a', '.', 'b.example', '127.1', '[::1]', '@', ':', '443'],
      ...['/', '?', '#', '\\', ' ', '22', '%', '\0', 'ü', '\ud800'],
    );
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 10 }), (pieces) => {
        const text = pieces.join('');
        const problems = destinationProblems(text, NOTHING);
        expect(Object.keys(DESTINATION_PROBLEMS)).to.include.members(problems);
        expect(new Set(problems).size).to.equal(problems.length);
      }),
    );
  });
});

describe('reading a host', () => {
  it('never reads a name where the URL parser reads an address, or the other way round', () => {
    const piece = fc.constantFrom(
      '0x',
      '7f',
      '127',
      '.',
      '0',
      '1',
      'a',
      ':',
      '[',
      ']',
      '@',
      '%',
      '/',
    );
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
        const text = pieces.join('');
        const host = parseHost(text);
        const hostname = URL.parse(`https://${text}/`)?.hostname;
        if (host === undefined || hostname === undefined) return;
        if (host.kind === 'name') expect(host.name).to.equal(hostname);
        else expect(/^[\d.]+$|^\[.*\]$/.test(hostname), text).to.equal(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('takes the host of a socket, IPv6 without brackets, but no zone, port or path', () => {
    expect(parseHost('::1')).to.deep.equal(parseHost('[::1]'));
    expect(parseHost('0x7f.1')).to.deep.equal(parseHost('127.0.0.1'));
    const malformed = [
      '',
      'e.com:80',
      '[::1]:80',
      'fe80::1%eth0',
      '[fe80::1%25eth0]',
      'e.com/a',
      'a b',
    ];
    for (const text of [...malformed, 'a@b', 'a\\b', 'a?b', 'a#b', 'a\0b', '[', '1.2.3.4.5']) {
      expect(parseHost(text), text).to.equal(undefined);
    }
  });

  it('tells names of the own network from public ones by whole labels', () => {
    for (const name of ['notlocal.example', 'alocalhost.example', 'local.example', 'svc.example']) {
      expect(judgeName(name), name).to.equal('public');
    }
    for (const name of ['local', 'a.local', 'x.localhost', 'a.svc']) {
      expect(judgeName(name), name).to.equal('private');
    }
    expect(judgeName('ametadata.google.internal')).to.equal('private');
  });
});
