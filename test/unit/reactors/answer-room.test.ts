import { expect } from 'chai';
import { AnswerRoom } from '../../../data-plane/reactors/answer-room.ts';
import { ApiError } from '../../../shared/errors.ts';

const MIB = 1024 * 1024;
const HOUR_MS = 60 * 60 * 1_000;

describe('the room for large answers to reactions with a key', () => {
  let now = 0;
  const roomFor = (bytes: number): AnswerRoom => new AnswerRoom(bytes, () => now);
  function statusOf(room: AnswerRoom, tenant: string): number {
    try {
      room.require(tenant);
      return 200;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return error.status;
    }
  }

  it('ends at its bound, for one tenant alone', () => {
    const room = roomFor(4 * MIB);
    for (const status of [200, 200, 200, 200, 429]) {
      expect(statusOf(room, 'a')).to.equal(status);
      room.add('a', MIB);
    }
    expect(statusOf(room, 'b')).to.equal(200);
  });

  it('is 4 GiB, unless told otherwise', () => {
    const room = new AnswerRoom();
    room.add('a', 4 * 1024 * MIB - 1);
    expect(statusOf(room, 'a')).to.equal(200);
    room.add('a', 5 * MIB);
    expect(statusOf(room, 'a')).to.equal(429);
  });

  it('is not taken by small answers', () => {
    const room = roomFor(MIB);
    for (let bytes = 0; bytes < 2 * MIB; bytes += 32 * 1024) room.add('a', 32 * 1024);
    expect(statusOf(room, 'a')).to.equal(200);
    for (let bytes = 0; bytes < MIB; bytes += 33 * 1024) room.add('a', 33 * 1024);
    expect(statusOf(room, 'a')).to.equal(429);
  });

  it('is there again when answers are no longer kept, and not before', () => {
    const room = roomFor(2 * MIB);
    for (const at_ms of [HOUR_MS - 1, HOUR_MS]) {
      now = at_ms;
      room.add('a', MIB);
    }
    now = 25 * HOUR_MS - 1;
    expect(statusOf(room, 'a')).to.equal(429);
    now = 25 * HOUR_MS;
    expect(statusOf(room, 'a')).to.equal(200);
    room.add('a', MIB);
    expect(statusOf(room, 'a')).to.equal(429);
    now = 26 * HOUR_MS;
    expect(statusOf(room, 'a')).to.equal(200);
  });
});
