import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { HostThreads } from '../../../shared/sandbox/host-threads.ts';
import type { RunMessage } from '../../../shared/sandbox/protocol.ts';

interface Sent {
  readonly message: RunMessage;
  readonly body: string;
}

/** Threads that only note what they are sent, on pipes that take all of it, or none. */
function startThreads(count: number) {
  const sent: Sent[][] = Array.from({ length: count }, () => []);
  const pipes = { areFull: false };
  const holders = new Int32Array(count);
  const streams = sent.map((list) => ({
    send: (message: RunMessage, body = ''): void => void list.push({ message, body }),
    cancel(message: RunMessage): boolean {
      const at = list.findIndex((entry) => entry.message === message);
      if (pipes.areFull) list.splice(at, 1);
      return pipes.areFull;
    },
  }));
  const threads = new HostThreads(streams, () => holders);
  let last = 0;
  /** Returns the run's id. */
  const add = (tenant_id: string, script = tenant_id, ends_at_ms = 0): number => {
    last += 1;
    const limits = { purpose: 'invoke', ends_at_ms, services: [], reuse: false } as const;
    const message = { kind: 'run', id: last, script_key: script, tenant_id, ...limits } as const;
    threads.add({ message, source: `source of ${script}`, request: '{}' });
    return last;
  };
  const ids = (): number[][] => sent.map((list) => list.map(({ message }) => message.id));
  const end = (thread: number, id: number): boolean =>
    threads.take(thread, { kind: 'result', id, ending: 'ok', console: [] });
  return { threads, sent, pipes, holders, add, ids, end };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the threads of a host, as the gateway sees them', () => {
  it('get nothing before they can work, and all in order then', () => {
    const { threads, add, ids } = startThreads(1);
    add('one');
    add('one');
    expect([ids(), threads.messages().length, threads.placedIds()]).to.deep.equal([[[]], 2, []]);
    threads.open();
    expect([ids(), threads.placedIds().sort()]).to.deep.equal([[[1, 2]], [1, 2]]);
  });

  it('serve one tenant each; others wait, and take what becomes free in their order', async () => {
    const { threads, add, ids, end } = startThreads(2);
    threads.open();
    for (const tenant of ['one', 'two', 'one', 'three', 'four', 'three']) add(tenant);
    expect(ids()).to.deep.equal([[1, 3], [2]]);
    end(1, 2);
    await nextTurn();
    expect(ids()).to.deep.equal([
      [1, 3],
      [2, 4, 6],
    ]);
    end(0, 1);
    end(0, 3);
    await nextTurn();
    expect(ids()).to.deep.equal([
      [1, 3, 5],
      [2, 4, 6],
    ]);
  });

  it('leave one of them to others, whoever holds the rest', () => {
    const { threads, add, ids } = startThreads(3);
    threads.open();
    const first = add('one');
    threads.noteHolders([first]);
    const second = add('one');
    threads.noteHolders([first, second]);
    add('one');
    add('two');
    expect(ids()).to.deep.equal([[1, 3], [2], [4]]);
  });

  it('are held no more when something is heard of them', () => {
    const { threads, add, ids } = startThreads(3);
    threads.open();
    const first = add('one');
    threads.noteHolders([first]);
    threads.take(0, { kind: 'call', id: first, call: 1, service: 'fetch' });
    add('one');
    expect(ids()).to.deep.equal([[1, 2], [], []]);
  });

  it('have room for 32 runs that compute, and for more when some wait for answers', async () => {
    const { threads, add, ids } = startThreads(1);
    threads.open();
    for (let run = 1; run <= 34; run += 1) add('one');
    expect(ids()[0]).to.have.length(32);
    threads.take(0, { kind: 'call', id: 1, call: 1, service: 'fetch' });
    threads.take(0, { kind: 'call', id: 1, call: 2, service: 'fetch' });
    await nextTurn();
    expect(ids()[0]).to.have.length(33);
    expect([threads.answered(1, 1), threads.answered(1, 2)]).to.deep.equal([0, 0]);
    threads.take(0, { kind: 'cancel', id: 1, call: 2 });
    await nextTurn();
    expect(ids()[0]).to.have.length(33);
  });

  it('are shared with who has waited for 100 ms, where nobody computes', async () => {
    const { threads, add, ids } = startThreads(2);
    threads.open();
    threads.noteHolders([add('one')]);
    add('two');
    add('three');
    threads.placeWaiting();
    expect(ids()).to.deep.equal([[1], [2]]);
    await delay(120);
    threads.placeWaiting();
    expect(ids()).to.deep.equal([[1], [2, 3]]);
  });

  it('are not shared while somebody computes there now, whatever was reported', async () => {
    const { threads, holders, add, ids } = startThreads(2);
    threads.open();
    for (const tenant of ['one', 'two', 'three', 'four']) add(tenant);
    await delay(120);
    holders.set([1, 2]);
    threads.placeWaiting();
    expect(ids()).to.deep.equal([[1], [2]]);
    holders.set([0, 2]);
    threads.placeWaiting();
    expect(ids()).to.deep.equal([[1, 3, 4], [2]]);
  });

  it('go to who has waited before the next run of whom they served', () => {
    const { threads, add, ids, end } = startThreads(1);
    threads.open();
    add('one');
    add('two');
    end(0, 1);
    add('one');
    expect(ids()).to.deep.equal([[1, 2]]);
  });

  it('get the source of a script once, and again when they say that it is gone', () => {
    const { threads, sent, add } = startThreads(1);
    threads.open();
    const first = add('one');
    const second = add('one');
    const lengths = () => sent[0]?.map(({ message, body }) => [message.source_length, body]);
    expect(lengths()).to.deep.equal([
      [13, 'source of one{}'],
      [undefined, '{}'],
    ]);
    expect(threads.take(0, { kind: 'unknown_script', id: second })).to.equal(false);
    expect(lengths()?.[2]).to.deep.equal([13, 'source of one{}']);
    for (const id of [first, second]) {
      expect(() => threads.take(0, { kind: 'unknown_script', id })).to.throw(TypeError);
    }
  });

  it('get it again after 24 other scripts', () => {
    const { threads, sent, add, end } = startThreads(1);
    threads.open();
    const withSource = (script: string): boolean => {
      end(0, add('one', script));
      return sent[0]?.at(-1)?.message.source_length !== undefined;
    };
    expect([withSource('first'), withSource('first')]).to.deep.equal([true, false]);
    for (let other = 1; other <= 23; other += 1) withSource(`other ${other}`);
    expect(withSource('first')).to.equal(false);
    for (let other = 1; other <= 24; other += 1) withSource(`another ${other}`);
    expect(withSource('first')).to.equal(true);
  });

  it('speak for their own runs only, and for none that has ended', () => {
    const { threads, add, end } = startThreads(2);
    threads.open();
    const id = add('one');
    add('two');
    expect([end(1, id), end(2, id), end(0, 99)]).to.deep.equal([false, false, false]);
    expect([end(0, id), end(0, id), threads.answered(id, 1)]).to.deep.equal([
      ...[true, false, undefined],
    ]);
  });

  it('get nothing of a run that was abandoned as it waited', async () => {
    const { threads, add, ids, end } = startThreads(1);
    threads.open();
    add('one');
    threads.abandon(add('two'));
    end(0, 1);
    await nextTurn();
    expect([ids(), threads.messages().length]).to.deep.equal([[[1]], 0]);
  });

  it('get nothing of one whose turn in a full pipe has not come, and are free of it', () => {
    const { threads, pipes, add, ids } = startThreads(1);
    threads.open();
    pipes.areFull = true;
    const id = add('one');
    add('two');
    threads.abandon(id);
    expect([ids(), threads.messages().length, threads.isIdle]).to.deep.equal([[[2]], 1, false]);
    threads.abandon(2);
    expect([ids(), threads.isIdle]).to.deep.equal([[[]], true]);
  });

  it('are not free of one that they have got, until they say that it is over', () => {
    const { threads, add, ids, end } = startThreads(2);
    threads.open();
    const first = add('one');
    threads.abandon(first);
    expect([
      threads.messages().length,
      threads.has(first),
      threads.answered(first, 1),
    ]).to.deep.equal([...[0, false, undefined]]);
    expect([threads.isAbandoned(first), threads.isIdle]).to.deep.equal([true, false]);
    threads.noteHolders([first]);
    add('two');
    add('three');
    expect(ids()).to.deep.equal([[1], [2]]);
    expect(threads.take(0, { kind: 'call', id: first, call: 1, service: 'fetch' })).to.equal(false);
    expect(ids()).to.deep.equal([[1], [2]]);
    expect(end(0, first)).to.equal(false);
    expect(ids()).to.deep.equal([[1, 3], [2]]);
  });

  it('count a call once, and none whose number is not higher than the last', async () => {
    const { threads, add, ids, end } = startThreads(1);
    threads.open();
    for (let run = 1; run <= 33; run += 1) add('one');
    const call = (of: number) =>
      threads.take(0, { kind: 'call', id: 1, call: of, service: 'fetch' } as const);
    expect([call(5), call(5), call(4), call(6)]).to.deep.equal([true, false, false, true]);
    await nextTurn();
    expect(ids()[0]).to.have.length(33);
    expect([threads.answered(1, 5), threads.answered(1, 6)]).to.deep.equal([0, 0]);
    end(0, 2);
    add('one');
    await nextTurn();
    // Nothing is left that waits for an answer, so 32 of them compute.
    expect(ids()[0]).to.have.length(33);
  });

  it('name those whose time was over as they waited, not those that are placed', () => {
    const { threads, add } = startThreads(1);
    threads.open();
    add('one', 'one', 10);
    add('two', 'two', 10);
    add('two', 'two', 30);
    expect(threads.expired(9)).to.deep.equal([]);
    expect(threads.expired(20).map(({ id }) => id)).to.deep.equal([2]);
  });
});
