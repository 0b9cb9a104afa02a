/** The right to a fetch is asked for when it is sent, however long it has waited for its turn. */
import { expect } from 'chai';
import { ScriptCallError } from '../../../shared/sandbox/script-services.ts';
import { type Destination, startHttp } from '../egress/destinations.ts';
import { type Asking, messageOf, startAsking } from './fetch-asking.ts';

const LIVE = new AbortController().signal;

describe('the right to a fetch', () => {
  let asking: Asking;
  let destination: Destination;
  let base: string;
  /** Awaited before an answer. */
  let hold: () => Promise<unknown>;
  let right: () => Promise<unknown>;
  const gone = new ScriptCallError('taken back');
  const fetch = (path: string): Promise<string> => {
    const request = messageOf(Object.assign({ url: `${base}${path}` }));
    return asking.fetches.fetchFor('tenant', () => right())(request, LIVE);
  };
  const rejection = (sent: Promise<unknown>): Promise<unknown> =>
    sent.then(
      () => undefined,
      (error: unknown) => error,
    );

  before(async () => {
    asking = startAsking({ limits: { tenantRequestsMax: 1 } });
    destination = await startHttp(async (request, response) => {
      await hold();
      const location = request.url === '/redirect' ? { Location: '/target' } : {};
      response.writeHead(request.url === '/redirect' ? 302 : 200, location).end('ok');
    });
    base = `http://127.0.0.1:${destination.port}`;
  });
  after(async () => {
    await asking.fetches.close();
    await destination.close();
  });
  beforeEach(() => {
    destination.requests.splice(0);
    hold = async () => undefined;
    right = async () => undefined;
  });

  it('is asked for after the wait, not before it', async () => {
    const waiting: Promise<unknown>[] = [];
    hold = async () => {
      hold = async () => undefined;
      waiting.push(rejection(fetch('/second')), rejection(fetch('/third')));
      right = () => Promise.reject(gone);
    };
    await fetch('/first');
    expect(await Promise.all(waiting)).to.deep.equal([gone, gone]);
    expect(destination.requests).to.deep.equal(['/first']);
    right = async () => undefined;
    // Those that were refused have given their turns back.
    await fetch('/fourth');
  });

  it('is asked for before each redirect is followed', async () => {
    await fetch('/redirect');
    expect(destination.requests).to.deep.equal(['/redirect', '/target']);
    hold = async () => {
      right = () => Promise.reject(gone);
    };
    expect(await rejection(fetch('/redirect'))).to.equal(gone);
    expect(destination.requests.slice(2)).to.deep.equal(['/redirect']);
  });

  it('says nothing of a fault of ours', async () => {
    right = () => Promise.reject(new Error('secret'));
    expect(await rejection(fetch('/'))).to.have.property('message', 'The request failed');
  });
});
