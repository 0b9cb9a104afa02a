/** How many connections `npm start` needs, said before anything is started. */
import { expect } from 'chai';
import { checkPoolSize } from '../../embedded/check-start.ts';
import { POOL_MIN } from '../../embedded/planes.ts';
import { testServer, urlOf } from '../support/test-server.ts';

describe('the number of connections', () => {
  const refusal = async (poolMax: number): Promise<string | undefined> => {
    const { roleUrl } = await testServer();
    const check = checkPoolSize(urlOf(roleUrl, 'sallyport_template'), poolMax);
    return check.then(() => undefined).catch((error: Error) => error.message);
  };

  it('must be enough for both planes and the job process, and no more than the server has', async () => {
    expect(await refusal(POOL_MIN)).to.equal(undefined);
    expect(await refusal(POOL_MIN - 1)).to.match(/^DATABASE_POOL_MAX must be at least 6 /);
    expect(await refusal(999)).to.match(/^DATABASE_POOL_MAX is 999, but the server gives /);
  });
});
