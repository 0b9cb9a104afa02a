/**
 * What is changed while it is used: a value is brought out before it is deleted or not at all, and a
 * proxy is called as it was or as it is, never half of each.
 */
import { expect } from 'chai';
import { OK, type Origin, startOrigin } from '../proxy/origin.ts';
import { type Proxies, startProxies } from '../proxy/proxies.ts';
import { startCallers } from '../support/callers.ts';
import type { Answer } from '../support/http-call.ts';

const ROUNDS = 100;
const CHANGES = 20;
const CALLERS = 4;
const JSON_TYPE = { 'content-type': 'application/json' };

describe('what is changed while it is used', function () {
  this.timeout(120_000);
  let proxies: Proxies;
  let origin: Origin;
  before(async () => {
    proxies = await startProxies({ SANDBOX_HOSTS: '1' });
    origin = await startOrigin(OK);
  });
  after(async () => {
    await origin?.close();
    await proxies?.stop();
  });

  /** One call through a proxy; answers of destinations are text. */
  async function forward(proxyKey: string, body: unknown): Promise<Answer<undefined>> {
    const response = await fetch(`${proxies.url}/proxy`, {
      method: 'POST',
      headers: { ...JSON_TYPE, 'bt-api-key': proxies.key, 'bt-proxy-key': proxyKey },
      body: JSON.stringify(body),
    });
    const { status, headers } = response;
    return { status, headers, text: await response.text(), body: undefined };
  }

  it('a token that is deleted is forwarded before that, or not at all', async () => {
    const { key: proxyKey } = await proxies.proxy({ destination_url: origin.url });
    const remover = await proxies.application({ permissions: ['token:delete'] });
    for (let round = 0; round < ROUNDS; round += 1) {
      const value = `value-${round}-end`;
      const token = await proxies.token(value);
      const use = (when: string) => forward(proxyKey, { value: `{{ ${token} }}`, when });
      const early = Array.from({ length: CALLERS }, () => use('early'));
      await proxies.manage(`DELETE /tokens/${token}`, { key: remover.key });
      const late = await Promise.all([use('late'), use('late')]);
      for (const { status } of await Promise.all(early)) expect(status).to.be.oneOf([200, 400]);
      for (const { status } of late) expect(status).to.equal(400);
    }
    const bodies = origin.received.map(({ body }) => body);
    expect(bodies.filter((body) => body.includes('late'))).to.deep.equal([]);
    // Else nothing was ever forwarded, and the test shows nothing.
    expect(bodies.filter((body) => /value-[0-9]+-end/.test(body))).not.to.deep.equal([]);
  });

  it('a proxy that is changed is called as it was or as it is, with all that belongs to it', async () => {
    const sideOf = (side: string) => ({
      destination_url: `${origin.url}/${side}`,
      configuration: { side },
      request_transform: {
        code: `module.exports = async (req) => ({
          headers: req.args.headers,
          body: { code: '${side}', configuration: req.configuration.side },
        });`,
      },
    });
    const { id, key: proxyKey } = await proxies.proxy(sideOf('a'));
    const first = origin.received.length;
    const callers = startCallers(CALLERS, () => ({
      line: 'POST /proxy',
      answer: forward(proxyKey, {}),
    }));
    let answered = 0;
    for (let change = 1; change <= CHANGES; change += 1) {
      answered += CALLERS * 2;
      await callers.answered(answered);
      const body = JSON.stringify(sideOf(change % 2 === 0 ? 'a' : 'b'));
      const headers = { 'content-type': 'application/merge-patch+json' };
      await proxies.manage(`PATCH /proxies/${id}`, { headers, body });
    }
    const samples = await callers.stop();
    // Whose transform ran while the destination was changed is told to come again, and was not sent.
    const refused = samples.filter(({ status }) => status !== 200);
    for (const { status, retryAfter, text } of refused) {
      expect([status, retryAfter]).to.deep.equal([503, '1']);
      expect(text).to.include('The destination of the proxy was changed');
    }
    const seen = origin.received.slice(first).map(({ line, body }) => {
      const { code, configuration } = JSON.parse(body) as Record<string, string>;
      return `${line.split(' ')[1]} ${code} ${configuration}`;
    });
    expect(new Set(seen)).to.deep.equal(new Set(['/a a a', '/b b b']));
    expect(seen).to.have.length(samples.length - refused.length);
    expect(refused.length).to.be.at.most(CHANGES * CALLERS);
  });
});
