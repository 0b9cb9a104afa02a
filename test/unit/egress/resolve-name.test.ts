import { expect } from 'chai';
import { EgressError } from '../../../shared/egress/egress-error.ts';
import { createResolveName } from '../../../shared/egress/resolve-name.ts';
import { type DnsServer, startDnsServer, type Zone } from './dns-server.ts';

const SERVFAIL = 2;
const NXDOMAIN = 3;
const patient = new AbortController().signal;

describe('resolving a destination', () => {
  let server: DnsServer | undefined;
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });

  async function resolve(zone: Zone, timeoutMs = 5_000): Promise<string[] | EgressError> {
    server = await startDnsServer(zone);
    const resolveName = createResolveName({ servers: [server.address], timeoutMs });
    return resolveName('pay.example', patient).catch((error: EgressError) => error);
  }

  function codeOf(answer: string[] | EgressError): string {
    expect(answer).to.be.instanceOf(EgressError);
    return answer instanceof EgressError ? answer.code : '';
  }

  it('answers all addresses, IPv4 first', async () => {
    const zone: Zone = (type) => {
      if (type === 'A') return ['203.0.113.1', '203.0.113.2'];
      return type === 'AAAA' ? ['2001:db8:0:0:0:0:0:1'] : [];
    };
    expect(await resolve(zone)).to.deep.equal(['203.0.113.1', '203.0.113.2', '2001:db8::1']);
  });

  it('asks for each kind of address once', async () => {
    await resolve((type) => (type === 'A' ? ['203.0.113.1'] : []));
    expect(server?.asked.filter((one) => one === 'A pay.example')).to.have.length(1);
  });

  it('is content with one kind when the other fails', async () => {
    const zone: Zone = (type) => (type === 'AAAA' ? ['2001:db8:0:0:0:0:0:1'] : SERVFAIL);
    expect(await resolve(zone)).to.deep.equal(['2001:db8::1']);
  });

  it('fails for a name that does not exist, has no address, or a broken server', async () => {
    for (const zone of [() => NXDOMAIN, () => [], () => SERVFAIL]) {
      expect(codeOf(await resolve(zone))).to.equal('name_not_resolved');
      await server?.close();
      server = undefined;
    }
  });

  it('ends when the server stays silent', async () => {
    expect(codeOf(await resolve(() => 'silent', 100))).to.equal('name_timeout');
  });

  it('ends when its caller does not want the answer any more', async () => {
    server = await startDnsServer(() => 'silent');
    const caller = new AbortController();
    const resolving = createResolveName({ servers: [server.address] })('e.com', caller.signal);
    caller.abort();
    expect(codeOf(await resolving.catch((error: EgressError) => error))).to.equal('name_timeout');
  });

  /** `pay.example` leads to a1, a1 to a2 … up to a<length>; every name of them has the address. */
  const chain =
    (length: number): Zone =>
    (type, name) => {
      if (type === 'A') return ['203.0.113.1'];
      const index = name === 'pay.example' ? 0 : Number(name.slice(1));
      return type === 'CNAME' && index < length ? [`a${index + 1}`] : [];
    };

  it('follows eight aliases', async () => {
    expect(await resolve(chain(8))).to.deep.equal(['203.0.113.1']);
    expect(server?.asked).to.include('CNAME a8');
  });

  it('refuses nine aliases, twenty, and a circle of them', async () => {
    const circle: Zone = (type) => (type === 'A' ? ['203.0.113.1'] : ['pay.example']);
    for (const zone of [chain(9), chain(20), circle]) {
      const answer = await resolve((type, name) => (type === 'AAAA' ? [] : zone(type, name)));
      expect(codeOf(answer)).to.equal('name_chain_too_long');
      expect(server?.asked.filter((one) => one.startsWith('CNAME'))).to.have.length.below(10);
      await server?.close();
      server = undefined;
    }
  });

  it('does not fail for a server that refuses to tell aliases', async () => {
    const answer = await resolve((type) => {
      if (type === 'CNAME') return SERVFAIL;
      return type === 'A' ? ['203.0.113.1'] : [];
    });
    expect(answer).to.deep.equal(['203.0.113.1']);
  });

  it('never repeats the name in an error, not even a number hidden in it', async () => {
    server = await startDnsServer(() => NXDOMAIN);
    const resolveName = createResolveName({ servers: [server.address] });
    const failure = await resolveName('n4242424242424242.evil.example', patient).catch(
      (error: EgressError) => error,
    );
    expect(JSON.stringify(failure, Object.getOwnPropertyNames(failure))).not.to.contain('4242');
    expect(failure).to.include({ code: 'name_not_resolved', detail: 'ENOTFOUND' });
  });
});
