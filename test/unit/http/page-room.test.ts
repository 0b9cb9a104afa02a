/** Room for large pages: who gets it, who waits, who is told to come back. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { PageRoom } from '../../../data-plane/page-room.ts';
import { ApiError } from '../../../shared/errors.ts';

const LIMITS = { tenant_bytes_max: 20, bytes_max: 50, tenant_waiting_max: 2, wait_ms: 60_000 };

/** What an attempt has come to so far. */
function watch(attempt: Promise<() => void>) {
  const seen: { release?: () => void; error?: unknown } = {};
  attempt.then(
    (release) => {
      seen.release = release;
    },
    (error: unknown) => {
      seen.error = error;
    },
  );
  return seen;
}

const refusalOf = (error: unknown): unknown[] =>
  error instanceof ApiError ? [error.status, error.headers] : [error];

describe('room for large pages', () => {
  it('is for so many bytes of a tenant; the next one waits until there is room', async () => {
    const room = new PageRoom(LIMITS);
    const first = watch(room.enter('a', 10));
    const second = watch(room.enter('a', 10));
    const third = watch(room.enter('a', 10));
    const neighbour = watch(room.enter('b', 10));
    await turn();
    expect([first, second, third, neighbour].map(({ release }) => release !== undefined)).to.eql([
      ...[true, true, false, true],
    ]);
    second.release?.();
    await turn();
    expect(third.release).not.to.equal(undefined);
  });

  it('is always for one page, however large', async () => {
    const room = new PageRoom(LIMITS);
    const large = watch(room.enter('a', 1_000));
    const small = watch(room.enter('b', 1));
    await turn();
    expect([large.release !== undefined, small.release !== undefined]).to.eql([true, false]);
    large.release?.();
    await turn();
    expect(small.release).not.to.equal(undefined);
  });

  it('is not taken from others by those who wait for their own tenant', async () => {
    const room = new PageRoom(LIMITS);
    const held = [watch(room.enter('a', 20)), watch(room.enter('b', 20))];
    const own = watch(room.enter('a', 10));
    const other = watch(room.enter('c', 10));
    await turn();
    expect([own.release, other.release].map(Boolean)).to.eql([false, true]);
    for (const { release } of held) release?.();
    await turn();
    expect(own.release).not.to.equal(undefined);
  });

  it('is refused with 429 when too many wait, or when it takes too long', async () => {
    const room = new PageRoom(LIMITS);
    const leave = await room.enter('a', 20);
    const waiting = [watch(room.enter('a', 1)), watch(room.enter('a', 1))];
    const tooMany = watch(room.enter('a', 1));
    await turn();
    const refused = [429, { 'retry-after': '1' }];
    expect(refusalOf(tooMany.error)).to.deep.equal(refused);
    expect(waiting.map(({ error }) => error)).to.deep.equal([undefined, undefined]);
    leave();
    await turn();
    expect(waiting.map(({ release }) => release !== undefined)).to.eql([true, true]);
    const impatient = new PageRoom({ ...LIMITS, wait_ms: 1 });
    const release = await impatient.enter('a', 20);
    const late = await impatient.enter('a', 1).catch((error: unknown) => error);
    expect(refusalOf(late)).to.deep.equal(refused);
    release();
    // Who has been refused takes no room when there is some.
    const after = [watch(impatient.enter('a', 10)), watch(impatient.enter('a', 10))];
    await turn();
    expect(after.map(({ release: given }) => given !== undefined)).to.eql([true, true]);
  });
});
