/** TLS to destinations: verified against the public roots and SALLYPORT_EGRESS_CA_FILE, nothing else. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, type TlsOptions } from 'node:tls';
import { expect } from 'chai';
import { issueCertificate } from '../unit/egress/issue-certificate.ts';
import { OK, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, type RawAnswer, request, sendRaw, valuesOf } from './raw-client.ts';

const YESTERDAY = new Date(Date.now() - 86_400_000);

describe('TLS to a destination', () => {
  const ca = issueCertificate({ subject: 'Test CA', isCa: true });
  let folder: string;
  let proxies: Proxies;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-ca-'));
    const file = join(folder, 'ca.pem');
    await writeFile(file, ca.cert);
    proxies = await startProxies({ SALLYPORT_EGRESS_CA_FILE: file });
  });
  after(async () => {
    await proxies?.stop();
    await rm(folder, { recursive: true });
  });

  async function answerOf(
    tls: TlsOptions,
    host = 'localhost',
  ): Promise<{ answer: RawAnswer; received: number }> {
    const origin = await startOrigin(OK, tls);
    const { key } = await proxies.proxy({ destination_url: origin.url });
    const lines = [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`, 'Connection: close'];
    const bytes = request('GET /proxy', lines).replace('Host: localhost', `Host: ${host}`);
    const { text } = await sendRaw(proxies.port, bytes);
    await origin.close();
    return { answer: parseAnswer(text), received: origin.received.length };
  }

  const issue = (options: object = {}) =>
    issueCertificate({ subject: 'localhost', issuer: ca, names: ['localhost'], ...options });

  it('is made with a certificate of the CA file', async () => {
    const { answer } = await answerOf(issue());
    expect([answer.status, answer.body]).to.deep.equal([200, 'ok']);
  });

  it('names the host of the destination, whatever the caller calls it', async () => {
    const asked: string[] = [];
    const { key, cert } = issue();
    const context = createSecureContext({ key, cert });
    const { answer } = await answerOf(
      {
        // Without a name, or with another, there is no certificate that fits.
        ...issue({ names: ['other.example'] }),
        SNICallback(servername, done) {
          asked.push(servername);
          done(null, servername === 'localhost' ? context : undefined);
        },
      },
      'other.example',
    );
    expect([answer.status, answer.body]).to.deep.equal([200, 'ok']);
    expect(asked).to.deep.equal(['localhost']);
  });

  it('is refused with a certificate of another name than was asked for: 502', async () => {
    const context = createSecureContext(issue({ names: ['other.example'] }));
    const { answer, received } = await answerOf({
      ...issue(),
      SNICallback: (_servername, done) => done(null, context),
    });
    expect([answer.status, received]).to.deep.equal([502, 0]);
  });

  const refused: Record<string, () => TlsOptions> = {
    'an expired certificate': () => issue({ notBefore: new Date(0), notAfter: YESTERDAY }),
    'another host': () => issue({ names: ['other.example'] }),
    'its own signature': () => issueCertificate({ subject: 'localhost', names: ['localhost'] }),
    'another CA': () => issue({ issuer: issueCertificate({ subject: 'Other CA', isCa: true }) }),
    'TLS 1.1': () => ({
      ...issue(),
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL:@SECLEVEL=0',
    }),
  };
  for (const [name, tls] of Object.entries(refused)) {
    it(`is refused with ${name}: 502, and no request is sent`, async () => {
      const { answer, received } = await answerOf(tls());
      expect(answer.status).to.equal(502);
      expect(JSON.parse(answer.body)).to.have.all.keys('proxy_error');
      expect(valuesOf(answer, 'bt-proxy-destination-status')).to.deep.equal([]);
      expect(received).to.equal(0);
    });
  }
});
