/** How a right that is gone, and one that cannot be asked for, read inside a script. */
import { expect } from 'chai';
import { whileEntitled, withCallingRun } from '../../../data-plane/reactors/while-entitled.ts';
import { ApiError, type ErrorCode } from '../../../shared/errors.ts';
import { ScriptCallError } from '../../../shared/sandbox/script-services.ts';

const LIVE = new AbortController().signal;
const rejecting = (error: unknown) => ({ current: () => Promise.reject(error) });
const standing = { current: async () => undefined };

describe('a call of a script on a right that is asked for again', () => {
  const failure = async (error: unknown): Promise<unknown> => {
    let served = 0;
    const service = async (): Promise<string> => {
      served += 1;
      return '{}';
    };
    const caught: unknown = await whileEntitled(service, rejecting(error))('{}', LIVE).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(served).to.equal(0);
    return caught;
  };

  for (const code of ['unauthorized', 'forbidden', 'not_found'] satisfies ErrorCode[]) {
    it(`was taken back when it is ${code}`, async () => {
      const caught = await failure(new ApiError(code, 'secret'));
      expect(caught).to.be.instanceOf(ScriptCallError);
      expect(caught).to.have.property('message', 'The right to run this reactor was taken back.');
    });
  }

  const outages: [string, Error][] = [
    ['a database that is away', Object.assign(new Error('secret'), { code: 'ECONNREFUSED' })],
    ['a database that is shutting down', Object.assign(new Error('secret'), { code: '57P01' })],
    ['a service that is not available', new ApiError('unavailable', 'secret')],
  ];
  for (const [what, error] of outages) {
    it(`was not taken back by ${what}`, async () => {
      const caught = await failure(error);
      expect(caught).to.be.instanceOf(ScriptCallError);
      expect(caught).to.include({
        message: 'The service is not available; try again.',
        code: 'EAGAIN',
      });
    });
  }

  it('is a fault of ours otherwise, which says nothing', async () => {
    const fault = new Error('secret');
    expect(await failure(fault)).to.equal(fault);
  });

  it('needs the right of every run above it', async () => {
    const gone = new ApiError('unauthorized', 'gone');
    const via = { type: 'reactor', id: 'r' } as const;
    const run = { via, depth: 1, ends_at_ms: 0 };
    const above = withCallingRun(standing, { ...run, right: rejecting(gone) });
    const right = withCallingRun(standing, { ...run, depth: 2, right: above });
    expect(await right.current().catch((error: unknown) => error)).to.equal(gone);
    expect(withCallingRun(standing, undefined)).to.equal(standing);
    await withCallingRun(standing, { ...run, right: standing }).current();
  });
});
