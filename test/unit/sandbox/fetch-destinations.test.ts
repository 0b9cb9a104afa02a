/** Where the fetch of a script may lead: the rows of attacks C-13 that it can reach. */
import { expect } from 'chai';
import { type Destination, startHttp } from '../egress/destinations.ts';
import { type Asking, startAsking } from './fetch-asking.ts';

/** Every spelling is tried over http and https. */
const REFUSED_HOSTS = [
  ...['2130706433', '0x7f000001', '0177.0.0.1', '017700000001', '127.1', '0x7f.1', '127.0.0.1'],
  ...['0', '0.0.0.0', '[::]', '①②⑦.0.0.1', '127。0。0。1', '[::1]', '[::ffff:127.0.0.1]'],
  ...['[::ffff:a00:1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[fe80::1]'],
  ...['169.254.169.254', '[fd00:ec2::254]', '100.100.100.200', '192.0.0.192', '10.0.0.1'],
  ...['172.16.0.1', '192.168.1.1', '100.64.0.1', '198.18.0.1', '192.0.2.1', '224.0.0.1'],
  ...['240.0.0.1', '255.255.255.255', '[fc00::1]', '[ff02::1]', 'localhost', 'LOCALHOST'],
  ...['localhost.', 'foo.localhost', 'metadata.google.internal', 'metadata', 'metadata.goog'],
  ...['instance-data', '%31%32%37.0.0.1', '169.254.169.254.', '0251.0376.0251.0376'],
];

/** Refused whatever is on the allow list. */
const NEVER = [
  ...['169.254.169.254', '[fd00:ec2::254]', '100.100.100.200', '192.0.0.192', '[fe80::1]'],
  ...['metadata.google.internal', '0.0.0.0', '[::]', '[::ffff:169.254.169.254]', '168.63.129.16'],
  ...['[64:ff9b::a9fe:a9fe]', '2852039166'],
];
const EVERYTHING = '0.0.0.0/0,::/0';

describe('where the fetch of a script may lead', () => {
  let strict: Asking;
  let open: Asking;
  let victim: Destination;
  before(async () => {
    victim = await startHttp();
    strict = startAsking({ allowed: '', answers: [['93.184.215.14']] });
    open = startAsking({ allowed: EVERYTHING, answers: [['169.254.169.254']] });
  });
  after(async () => {
    expect(victim.connections()).to.equal(0);
    await Promise.all([strict.fetches.close(), open.fetches.close(), victim.close()]);
  });

  for (const host of REFUSED_HOSTS) {
    it(`is not ${host}`, async () => {
      for (const scheme of ['http', 'https']) {
        const { code, message } = await strict.failure(`${scheme}://${host}:${victim.port}/`);
        expect(code).to.be.oneOf(['ERR_DESTINATION_REFUSED', 'ERR_INVALID_URL']);
        expect(message).not.to.include(String(victim.port));
        expect(message).not.to.include(host);
      }
    });
  }

  for (const host of NEVER) {
    it(`is never ${host}, though everything is on the allow list`, async () => {
      const { code } = await open.failure(`http://${host}:${victim.port}/`);
      expect(code).to.equal('ERR_DESTINATION_REFUSED');
    });
  }

  it('is not a name that leads to metadata', async () => {
    const { code } = await open.failure('http://innocent.example.com/');
    expect(code).to.equal('ERR_DESTINATION_REFUSED');
  });

  it('is no public destination without TLS, and no port of another service', async () => {
    const plain = await strict.failure('http://public.example.com/');
    expect(plain.message).to.equal(
      'Plain http is allowed only to destinations that SALLYPORT_EGRESS_ALLOW names',
    );
    for (const port of [22, 25, 6379, 5432]) {
      const { message } = await strict.failure(`https://public.example.com:${port}/`);
      expect(message).to.equal('The port is not allowed');
    }
    expect((await strict.failure('https://public.example.com:0/')).code).to.match(/REFUSED|URL/);
    const beyond = await strict.failure('https://public.example.com:65536/');
    expect(beyond.code).to.equal('ERR_INVALID_URL');
  });

  for (const url of ['https://e.com\\@127.0.0.1/', 'https://127.0.0.1%2f@e.com/', 'https://a@b/']) {
    it(`is read from ${url} as a URL parser reads it`, async () => {
      const asking = startAsking({ allowed: '', answers: [['10.0.0.1']] });
      const { code } = await asking.failure(url);
      expect(code).to.be.oneOf(['ERR_DESTINATION_REFUSED', 'ERR_INVALID_URL']);
      expect(asking.egress.resolved.every((name) => name === 'e.com')).to.equal(true);
      await asking.fetches.close();
    });
  }

  it('is judged anew at each connection: a name that changes its address gains nothing', async () => {
    const answers = [
      ['10.0.0.1'],
      ['127.0.0.1'],
      ['169.254.169.254'],
      ['93.184.215.14', '10.0.0.1'],
    ];
    const rebinding = startAsking({ allowed: '', answers });
    for (const _ of answers) {
      const { code } = await rebinding.failure(`https://r.example.com:${victim.port}/`);
      expect(code).to.equal('ERR_DESTINATION_REFUSED');
    }
    expect(rebinding.egress.resolved).to.have.length(answers.length);
    await rebinding.fetches.close();
  });

  it('tells the operator of refusals and of whose they are, without the host', async () => {
    const asking = startAsking({ allowed: '' });
    await asking.failure('http://card-4242424242424242.localhost/');
    const refusal = { tenant_id: 'tenant', reason: 'address_refused', count: 1 };
    expect(asking.egress.logged).to.deep.equal([refusal]);
    expect(JSON.stringify(asking.egress.logged)).not.to.include('4242');
    await asking.fetches.close();
  });
});
