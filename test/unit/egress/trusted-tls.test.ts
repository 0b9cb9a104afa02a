import { once } from 'node:events';
import { request as httpsRequest, type RequestOptions, type ServerOptions } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { expect } from 'chai';
import { request } from 'undici';
import type { TlsMaterial } from '../../../shared/egress/trusted-tls.ts';
import { type Destination, refusalOf, startEgress, startHttps } from './destinations.ts';
import { type Issued, issueCertificate } from './issue-certificate.ts';

const NAME = 'pay.example';
const DAY_MS = 86_400_000;
const inDays = (days: number): Date => new Date(Date.now() + days * DAY_MS);

const authority = issueCertificate({ subject: 'Test authority', isCa: true });
const stranger = issueCertificate({ subject: 'Other authority', isCa: true });
const good = issueCertificate({ subject: NAME, issuer: authority, names: [NAME] });

describe('TLS to a destination', () => {
  const toClose: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of toClose.splice(0)) await close();
  });

  async function serve(identity: Issued, more: ServerOptions = {}): Promise<Destination> {
    const destination = await startHttps({ cert: identity.cert, key: identity.key, ...more });
    toClose.push(destination.close);
    return destination;
  }

  async function call(
    { port }: Destination,
    host = NAME,
    tls?: TlsMaterial,
    headers: Record<string, string> = {},
  ): Promise<string> {
    const egress = startEgress('127.0.0.0/8', [['127.0.0.1']], { extraCa: [authority.cert] });
    const dispatcher = egress.dispatcher({}, tls);
    toClose.push(() => dispatcher.destroy());
    const answer = await request(`https://${host}:${port}/`, { dispatcher, headers });
    return answer.body.text();
  }

  it('is made when the extra authority vouches for the name, and names the host', async () => {
    const destination = await serve(good);
    expect(await call(destination)).to.equal('hello');
    expect(destination.serverNames).to.deep.equal([NAME]);
  });

  it('takes the server name from the address, not from a Host header', async () => {
    const destination = await serve(good);
    expect(await call(destination, NAME, undefined, { host: 'other.example' })).to.equal('hello');
    expect(destination.serverNames).to.deep.equal([NAME]);
  });

  it('verifies a literal address as an address, without a server name', async () => {
    const byAddress = issueCertificate({ subject: 'a', issuer: authority, names: ['127.0.0.1'] });
    const destination = await serve(byAddress);
    expect(await call(destination, '127.0.0.1')).to.equal('hello');
    expect(destination.serverNames).to.deep.equal([false]);
    const refusal = await refusalOf(call(await serve(good), '127.0.0.1'));
    expect(refusal).to.include({ detail: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });

  const untrusted: [string, Issued, string][] = [
    [
      'has expired',
      issueCertificate({
        ...{ subject: NAME, issuer: authority, names: [NAME] },
        ...{ notBefore: inDays(-3), notAfter: inDays(-1) },
      }),
      'CERT_HAS_EXPIRED',
    ],
    [
      'is not valid yet',
      issueCertificate({
        ...{ subject: NAME, issuer: authority, names: [NAME] },
        ...{ notBefore: inDays(1), notAfter: inDays(2) },
      }),
      'CERT_NOT_YET_VALID',
    ],
    [
      'is for another host',
      issueCertificate({ subject: NAME, issuer: authority, names: ['other.example'] }),
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [
      'signs itself',
      issueCertificate({ subject: NAME, names: [NAME] }),
      'DEPTH_ZERO_SELF_SIGNED_CERT',
    ],
    [
      'is signed by somebody unknown',
      issueCertificate({ subject: NAME, issuer: stranger, names: [NAME] }),
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ],
  ];
  for (const [what, identity, detail] of untrusted) {
    it(`is refused when the certificate ${what}, and no request is sent`, async () => {
      const destination = await serve(identity);
      const refusal = await refusalOf(call(destination));
      expect(refusal).to.include({ code: 'tls_failed', detail });
      expect(destination.requests).to.deep.equal([]);
      expect(destination.connections()).to.equal(1);
      await destination.allClosed();
    });
  }

  it('is refused when the certificate is signed by one that is no authority', async () => {
    const forged = issueCertificate({ subject: 'Forged', issuer: good, names: [NAME] });
    const chain = { ...forged, cert: `${forged.cert}${good.cert}` };
    const refusal = await refusalOf(call(await serve(chain)));
    expect(refusal.code).to.equal('tls_failed');
    expect(refusal.detail).to.match(/^INVALID_(?:CA|PURPOSE)$/);
  });

  it('is 1.2 or newer', async () => {
    const old: ServerOptions = {
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL@SECLEVEL=0',
    };
    const destination = await serve(good, old);
    // The server is fine for who takes 1.1.
    const client = connectTls({
      ...{ port: destination.port, host: '127.0.0.1', servername: NAME, ca: authority.cert },
      ...{ minVersion: 'TLSv1', ciphers: 'ALL@SECLEVEL=0' },
    });
    await once(client, 'secureConnect');
    expect(client.getProtocol()).to.equal('TLSv1.1');
    client.destroy();
    expect((await refusalOf(call(destination))).code).to.equal('tls_failed');
    expect(destination.requests).to.deep.equal([]);
    const newer = await serve(good, { maxVersion: 'TLSv1.2' });
    expect(await call(newer)).to.equal('hello');
  });

  it('is not made laxer by the options of a request', async () => {
    const destination = await serve(issueCertificate({ subject: NAME, names: [NAME] }));
    const egress = startEgress('127.0.0.0/8', [['127.0.0.1']]);
    const agents = egress.agents();
    toClose.push(() => agents.destroy());
    const lax: RequestOptions = {
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
      minVersion: 'TLSv1',
    };
    const sent = httpsRequest({ ...lax, agent: agents.https, host: NAME, port: destination.port });
    sent.end();
    expect((await refusalOf(once(sent, 'response'))).code).to.equal('tls_failed');
    expect(destination.requests).to.deep.equal([]);
  });

  it('is not made laxer by NODE_TLS_REJECT_UNAUTHORIZED', async () => {
    const destination = await serve(issueCertificate({ subject: NAME, names: [NAME] }));
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      expect((await refusalOf(call(destination))).code).to.equal('tls_failed');
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    }
    expect(destination.requests).to.deep.equal([]);
  });

  it('shows our own certificate to who asks, and only from the dispatcher that has it', async () => {
    const client = issueCertificate({ subject: 'Sallyport', issuer: stranger });
    const destination = await serve(good, { requestCert: true, ca: stranger.cert });
    expect(await call(destination, NAME, client)).to.equal('hello');
    // TLS 1.3 tells the client of its missing certificate only after the handshake.
    const without = await call(destination).then(
      () => 'answered',
      () => 'failed',
    );
    expect(without).to.equal('failed');
    expect(destination.requests).to.have.length(1);
  });

  it('trusts an authority of one dispatcher nowhere else', async () => {
    const destination = await serve(
      issueCertificate({ subject: NAME, issuer: stranger, names: [NAME] }),
    );
    expect(await call(destination, NAME, { extraCa: [stranger.cert] })).to.equal('hello');
    expect((await refusalOf(call(destination))).code).to.equal('tls_failed');
    expect(await call(await serve(good), NAME, { extraCa: [stranger.cert] })).to.equal('hello');
  });
});
