/** The console of a reactor that somebody debugs: in its answers for a while, redacted, nowhere else. */
import { expect } from 'chai';
import { randomCardNumber } from '../../support/card-numbers.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

describe('a reactor under debugging', () => {
  let reactors: Reactors;
  let number: string;
  let token: string;
  before(async () => {
    reactors = await startReactors();
    number = randomCardNumber();
    token = await reactors.token({ type: 'card', data: { number } });
  });
  after(() => reactors?.stop());

  async function debug(reactor: Reactor, milliseconds: number): Promise<void> {
    await reactors.manage(`PATCH /reactors/${reactor.id}`, {
      headers: { 'content-type': 'application/merge-patch+json' },
      body: JSON.stringify({ debug_until: new Date(Date.now() + milliseconds).toISOString() }),
    });
  }

  it('answers with its console, without what was detokenized or configured', async () => {
    const reactor = await reactors.script(
      `console.log('paying', req.args.card.number, JSON.stringify(req.args));
       console.error('with', req.configuration.KEY, 'for', req.args.amount);
       return { raw: 1 };`,
      { configuration: { KEY: 'k3y-of-the-psp' } },
    );
    const args = { card: `{{ ${token} }}`, amount: 'twelve' };
    expect((await reactors.react(reactor, { args })).text).to.equal('{"raw":1}');
    await debug(reactor, 60_000);
    const { body, text } = await reactors.react(reactor, { args });
    expect(text).not.to.contain(number).and.not.to.contain('k3y-of');
    const { console: lines, duration_ms } = body._debug as {
      console: { level: string; text: string }[];
      duration_ms: number;
    };
    expect(duration_ms).to.be.at.least(0);
    expect(lines.map(({ level }) => level)).to.deep.equal(['log', 'error']);
    expect(lines[0]?.text).to.contain('paying [redacted]').and.to.contain('"amount":"twelve"');
    expect(lines[1]?.text).to.equal('with [redacted] for twelve');
  });

  it('answers with it when the code fails, too', async () => {
    const reactor = await reactors.script("console.log('so far'); throw new Error('boom')");
    await debug(reactor, 60_000);
    const { status, body } = await reactors.react(reactor);
    expect(status).to.equal(500);
    expect(body._debug).to.deep.include({ console: [{ level: 'log', text: 'so far' }], line: 1 });
  });

  it('ends by the clock of the database', async () => {
    const reactor = await reactors.script("console.log('x'); return {}");
    await debug(reactor, 60_000);
    expect((await reactors.react(reactor)).body).to.have.all.keys('_debug');
    await reactors.control.pool.query(
      `UPDATE reactors SET debug_until = clock_now() - interval '1 second' WHERE id = $1`,
      [reactor.id],
    );
    await reactors.manage('PUT /tenants/self', { json: { name: 'Acme' } });
    expect((await reactors.react(reactor)).text).to.equal('{}');
  });
});
