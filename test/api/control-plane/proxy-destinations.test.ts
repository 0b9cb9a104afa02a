/** Where proxies may lead: every form of attacks C-13 at create, and what an operator's range opens. */
import { expect } from 'chai';
import { parseAllowList } from '../../../shared/egress/address-rules.ts';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { call, type JsonObject } from '../../support/http-call.ts';

const post = (server: TestControlPlane, destination_url: unknown) =>
  call(server.baseUrl, 'POST /proxies', {
    ...{ key: server.tenant.managementKey, json: { name: 'P', destination_url } },
  });

async function expectRefused(server: TestControlPlane, url: unknown): Promise<void> {
  const { status, body, text } = await post(server, url);
  expect(status, text).to.equal(400);
  expect(body.errors).to.have.all.keys('destination_url');
  // Even a host may be a secret: `token@` in front of it is one.
  if (typeof url === 'string' && url.length > 8) expect(text).not.to.contain(url);
}

async function expectStored(server: TestControlPlane, url: string): Promise<void> {
  const { status, body, text } = await post(server, url);
  expect(status, text).to.equal(201);
  expect(body.destination_url).to.equal(url);
}

const LOOPBACK = [
  ...['http://2130706433/', 'http://0x7f000001/', 'http://0177.0.0.1/', 'http://017700000001/'],
  ...['http://127.1/', 'http://0x7f.1/', 'https://127.0.0.1/', 'https://2130706433/'],
  ...['http://①②⑦.0.0.1/', 'https://①②⑦。0。0。1/', 'https://127。0。0。1/'],
  ...['https://[::1]/', 'https://[::ffff:127.0.0.1]/', 'https://[::127.0.0.1]/'],
];
const UNSPECIFIED = ['http://0/', 'http://0.0.0.0/', 'https://0.0.0.0/', 'http://[::]/'];
const METADATA = [
  ...['https://169.254.169.254/', 'https://[fd00:ec2::254]/', 'https://100.100.100.200/'],
  ...['https://192.0.0.192/', 'https://metadata.google.internal/', 'http://169.254.169.254/latest'],
];
const NOT_PUBLIC = [
  ...['https://10.0.0.1/', 'https://172.16.0.1/', 'https://192.168.0.1/', 'https://100.64.0.1/'],
  ...['https://198.18.0.1/', 'https://192.0.2.1/', 'https://224.0.0.1/', 'https://240.0.0.1/'],
  ...['https://255.255.255.255/', 'https://[::ffff:a00:1]/', 'https://[fe80::1]/'],
];
const NAMES = [
  ...['https://localhost/', 'https://localhost./', 'https://LOCALHOST/', 'https://foo.localhost/'],
  ...['https://postgres/', 'https://sallyport.svc.cluster.local/', 'https://printer.local/'],
];
const SCHEMES = [
  ...['file:///etc/passwd', 'ftp://e.example/', 'gopher://e.example/', 'data:text/plain,x'],
  ...['javascript:alert(1)', 'http://e.example/', '//e.example', 'https:e.example', 'e.example'],
  ...['https://', 'https:///e.example', 'https:\\\\e.example', ''],
];
const PORTS = [0, 22, 25, 5432, 6379, 65_536].map((port) => `https://e.example:${port}/`);
const PARTS = [
  ...['https://user:pass@e.example/', 'https://user@e.example/', 'https://@e.example/'],
  ...['https://127.0.0.1%2f@e.example/', 'https://e.example/#', 'https://e.example/a#@127.0.0.1'],
  ...[
    ' https://e.example/',
    'https://e.example/\n',
    'https://e.exa\tmple/',
    'https://e.example/\0',
  ],
  ...['https://e.example/a b', `https://e.example/${'a'.repeat(383)}`],
];

describe('the destination of a proxy', () => {
  describe('without ranges of the operator', () => {
    let server: TestControlPlane;
    before(async () => {
      server = await startTestControlPlane();
    });
    after(() => server.stop());

    const refused = [
      ...[...LOOPBACK, ...UNSPECIFIED, ...METADATA, ...NOT_PUBLIC, ...NAMES],
      ...[...SCHEMES, ...PORTS, ...PARTS],
    ];
    for (const url of refused) {
      const shown = JSON.stringify(url.length > 60 ? `${url.slice(0, 30)}…` : url);
      it(`is not ${shown}`, () => expectRefused(server, url));
    }
    for (const url of [null, 7, ['https://e.example/'], { href: 'https://e.example/' }]) {
      it(`is no ${JSON.stringify(url)}`, () => expectRefused(server, url));
    }

    const stored = [
      ...['https://e.example', 'https://E.example/', 'https://e.example:8443/base?a=b&c'],
      ...['https://bücher.example/', 'https://e.example\\@127.0.0.1/', 'https://e.example/?@'],
      `https://e.example/${'a'.repeat(382)}`,
    ];
    for (const url of stored) {
      const shown = url.length > 60 ? `${url.slice(0, 30)}…` : url;
      it(`may be ${shown}, and is answered as it was given`, () => expectStored(server, url));
    }

    it('is judged with the other members, and names each', async () => {
      const { managementKey: key } = server.tenant;
      const json = { destination_url: 'http://10.0.0.1:22/' };
      const { body } = await call(server.baseUrl, 'POST /proxies', { key, json });
      expect(body.errors).to.have.all.keys('name');
      const both = await post(server, 'http://u:p@10.0.0.1:22/#');
      const messages = (both.body.errors as JsonObject).destination_url;
      expect(messages).to.have.lengthOf(5);
    });
  });

  describe('with ranges of the operator', () => {
    let server: TestControlPlane;
    before(async () => {
      const ranges = '127.0.0.0/8,10.0.0.0/8,169.254.0.0/16,100.64.0.0/10';
      server = await startTestControlPlane(parseAllowList(ranges));
    });
    after(() => server.stop());

    const stored = [
      ...['http://127.0.0.1:5432/base', 'https://127.0.0.1/', 'http://localhost:8080'],
      ...['http://10.1.2.3/', 'http://[::ffff:a00:1]/', 'https://internal-service/'],
    ];
    for (const url of stored) {
      it(`may be ${url}`, () => expectStored(server, url));
    }

    const refused = [
      ...['http://192.168.0.1/', 'https://192.168.0.1/', 'http://e.example/', ...METADATA],
      ...['http://u:p@10.0.0.1/', 'http://10.0.0.1/#a', 'ftp://10.0.0.1/', 'http://10.0.0.1:0/'],
    ];
    for (const url of refused) {
      it(`is still not ${url}`, () => expectRefused(server, url));
    }
  });
});
