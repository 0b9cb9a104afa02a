import { expect } from 'chai';
import {
  BATCH_ROWS_MAX,
  createBatcher,
  createGroupedBatcher,
} from '../../../shared/postgres/batcher.ts';

interface Identities {
  identity?: (item: string) => string;
  otherIdentity?: (item: string) => string | undefined;
}

/** A batcher whose statements end when the test says so. */
function controlled(options: Identities = {}) {
  const statements: { items: string[]; finish: () => void; fail: (error: Error) => void }[] = [];
  const batcher = createBatcher<string, string>({
    ...options,
    run: (items) =>
      new Promise((resolve, reject) => {
        statements.push({
          items,
          finish: () => resolve(items.map((item) => item.toUpperCase())),
          fail: reject,
        });
      }),
    // As the database's errors are read: to be held up may be an outage, too.
    isOutage: (error) => ['away', 'held up'].includes((error as Error).message),
    isolates: (error) => (error as Error).message === 'row',
    isHeldUp: (error) => (error as Error).message === 'held up',
  });
  return { batcher, statements };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('batched statements', () => {
  it('send what arrives in one turn in one statement, results in order', async () => {
    const { batcher, statements } = controlled();
    const results = Promise.all(['a', 'b', 'c'].map((item) => batcher.submit(item)));
    await turn();
    expect(statements.map((s) => s.items)).to.deep.equal([['a', 'b', 'c']]);
    statements[0]?.finish();
    expect(await results).to.deep.equal(['A', 'B', 'C']);
  });

  it('keep two in flight and collect the rest until one returns', async () => {
    const { batcher, statements } = controlled();
    const first = batcher.submit('a');
    await turn();
    const second = batcher.submit('b');
    await turn();
    const rest = Promise.all([batcher.submit('c'), batcher.submit('d')]);
    await turn();
    expect(statements.map((s) => s.items)).to.deep.equal([['a'], ['b']]);
    statements[0]?.finish();
    await first;
    await turn();
    expect(statements[2]?.items).to.deep.equal(['c', 'd']);
    statements[1]?.finish();
    statements[2]?.finish();
    expect(await second).to.equal('B');
    expect(await rest).to.deep.equal(['C', 'D']);
  });

  it('never put more rows into a statement than its limit, and lose none', async () => {
    const { batcher, statements } = controlled();
    const items = Array.from({ length: BATCH_ROWS_MAX * 2 + 5 }, (_, index) => `i${index}`);
    const results = Promise.all(items.map((item) => batcher.submit(item)));
    for (let done = 0; done < 3; done += 1) {
      await turn();
      statements[done]?.finish();
    }
    await turn();
    expect(await results).to.deep.equal(items.map((item) => item.toUpperCase()));
    expect(Math.max(...statements.map((s) => s.items.length))).to.equal(BATCH_ROWS_MAX);
  });

  it('never put two items of one identity into one statement', async () => {
    const { batcher, statements } = controlled({ identity: (item) => item.charAt(0) });
    const results = Promise.all(['a1', 'b1', 'a2'].map((item) => batcher.submit(item)));
    await turn();
    expect(statements.map((s) => s.items)).to.deep.equal([['a1', 'b1'], ['a2']]);
    for (const statement of statements) statement.finish();
    expect(await results).to.deep.equal(['A1', 'B1', 'A2']);
  });

  it('nor two with the same other identity, if they have one', async () => {
    const { batcher, statements } = controlled({
      identity: (item) => item.charAt(0),
      otherIdentity: (item) => item.at(1),
    });
    const items = ['ax', 'bx', 'c', 'd', 'ey'];
    const results = Promise.all(items.map((item) => batcher.submit(item)));
    await turn();
    expect(statements.map((s) => s.items)).to.deep.equal([['ax', 'c', 'd', 'ey'], ['bx']]);
    for (const statement of statements) statement.finish();
    expect(await results).to.deep.equal(items.map((item) => item.toUpperCase()));
  });

  it('try each row alone after an error that one row caused', async () => {
    const { batcher, statements } = controlled();
    const results = Promise.allSettled(['a', 'bad', 'c'].map((item) => batcher.submit(item)));
    await turn();
    statements[0]?.fail(new Error('row'));
    for (const [index, fails] of [false, true, false].entries()) {
      await turn();
      const statement = statements[index + 1];
      if (fails) statement?.fail(new Error('row'));
      else statement?.finish();
    }
    const settled = await results;
    expect(settled.map((result) => result.status)).to.deep.equal([
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
  });

  it('fail what waits when the database is away, and serve what comes after', async () => {
    const { batcher, statements } = controlled();
    const sent = [batcher.submit('a')];
    await turn();
    sent.push(batcher.submit('b'));
    await turn();
    sent.push(batcher.submit('waiting'));
    const settled = Promise.allSettled(sent);
    statements[0]?.fail(new Error('away'));
    statements[1]?.fail(new Error('away'));
    expect((await settled).map((result) => result.status)).to.deep.equal([
      'rejected',
      'rejected',
      'rejected',
    ]);
    const next = batcher.submit('z');
    await turn();
    statements[2]?.finish();
    expect(await next).to.equal('Z');
  });

  it('answer a list as a whole, in order, however many statements it takes', async () => {
    const { batcher, statements } = controlled();
    const items = Array.from({ length: BATCH_ROWS_MAX + 2 }, (_, n) => `i${n}`);
    const list = batcher.submitAll(items);
    const beside = batcher.submit('x');
    let done = false;
    void list.then(() => (done = true));
    await turn();
    expect(statements.map((s) => s.items.length)).to.deep.equal([BATCH_ROWS_MAX, 3]);
    statements[1]?.finish();
    expect(await beside).to.equal('X');
    await turn();
    expect(done).to.equal(false);
    statements[0]?.finish();
    expect(await list).to.deep.equal(items.map((item) => item.toUpperCase()));
    expect(await batcher.submitAll([])).to.deep.equal([]);
  });

  it('wait for results of a list that come later, and fail it with the first error', async () => {
    const later = Promise.withResolvers<string>();
    const failing = Promise.withResolvers<string>();
    const batcher = createBatcher<string, string>({
      run: async (items) =>
        items.map((item) => (item === 'l' ? later.promise : item === 'f' ? failing.promise : item)),
    });
    const list = batcher.submitAll(['a', 'l']);
    const failed = batcher.submitAll(['l', 'f', 'a']).catch((error: Error) => error.message);
    const other = batcher.submit('b');
    expect(await other).to.equal('b');
    failing.reject(new Error('no'));
    expect(await failed).to.equal('no');
    later.resolve('L');
    expect(await list).to.deep.equal(['a', 'L']);
  });

  it('fail a list with the row that fails alone, and nothing but that list', async () => {
    const { batcher, statements } = controlled();
    const list = batcher.submitAll(['a', 'bad']).catch((error: Error) => error.message);
    const other = batcher.submit('c');
    await turn();
    statements[0]?.fail(new Error('row'));
    for (const fails of [false, true, false]) {
      await turn();
      if (fails) statements.at(-1)?.fail(new Error('row'));
      else statements.at(-1)?.finish();
    }
    expect(await list).to.equal('row');
    expect(await other).to.equal('C');
  });

  /** Sends these and one that waits; the n-th statement fails with the n-th of `errors`, if there is one. */
  async function outcomes(items: string[], errors: (string | undefined)[]): Promise<string[]> {
    const { batcher, statements } = controlled();
    const results = items.map((item) => batcher.submit(item));
    await turn();
    const second = batcher.submit('beside');
    await turn();
    const waiting = batcher.submit('waiting');
    const settled = Promise.allSettled([...results, waiting]);
    for (const [index, error] of errors.entries()) {
      // The second statement is the one beside, which is done when the others are.
      const statement = statements[index === 0 ? 0 : index + 1];
      if (error === undefined) statement?.finish();
      else statement?.fail(new Error(error));
      await turn();
    }
    statements.at(-1)?.finish();
    statements[1]?.finish();
    await second;
    await turn();
    statements.at(-1)?.finish();
    return (await settled).map(({ status }) => status);
  }
  const [served, failed] = ['fulfilled', 'rejected'];

  it('fail with one row that waits in vain nothing but that row', async () => {
    expect(await outcomes(['a'], ['held up'])).to.deep.equal([failed, served]);
  });

  it('try no row alone that has been here for longer than two waits', async () => {
    const realNow = performance.now;
    const { batcher, statements } = controlled();
    const came = (item: string, ago_ms: number): Promise<string> => {
      performance.now = () => realNow.call(performance) - ago_ms;
      const result = batcher.submit(item);
      performance.now = realNow;
      return result;
    };
    const settled = Promise.allSettled([came('a', 3_000), came('b', 2_000), came('c', 0)]);
    await turn();
    statements[0]?.fail(new Error('held up'));
    for (const number of [1, 2]) {
      await turn();
      statements[number]?.finish();
    }
    expect(statements.map(({ items }) => items)).to.deep.equal([['a', 'b', 'c'], ['b'], ['c']]);
    expect((await settled).map(({ status }) => status)).to.deep.equal([failed, served, served]);
  });

  it('try each row alone after a wait in vain, and fail the one that waits again', async () => {
    const errors = ['held up', undefined, 'held up', undefined];
    expect(await outcomes(['a', 'b', 'c'], errors)).to.deep.equal([served, failed, served, served]);
  });

  it('try no more rows when a second one waits in vain; what waits is sent if any was served', async () => {
    const errors = ['held up', undefined, 'held up', 'held up'];
    expect(await outcomes(['a', 'b', 'c', 'd'], errors)).to.deep.equal([
      ...[served, failed, failed, failed],
      served,
    ]);
  });

  it('take it for an outage when none was, and when a row alone meets one', async () => {
    const allFailed = [failed, failed, failed, failed];
    const heldUp = ['held up', 'held up', 'held up'];
    expect(await outcomes(['a', 'b', 'c'], heldUp)).to.deep.equal(allFailed);
    expect(await outcomes(['a', 'b', 'c'], ['held up', 'away'])).to.deep.equal(allFailed);
  });

  it('of groups are sent beside each other, never together', async () => {
    const statements: string[][] = [];
    const batcher = createGroupedBatcher<string, string>(
      {
        run: (items) => {
          statements.push(items);
          return items[0]?.startsWith('a') === true
            ? new Promise(() => {})
            : Promise.resolve(items);
        },
      },
      (item) => item.charAt(0),
    );
    for (const item of ['a1', 'a2', 'a3']) {
      void batcher.submit(item);
      await turn();
    }
    expect(await Promise.all(['b1', 'b2'].map((item) => batcher.submit(item)))).to.deep.equal([
      'b1',
      'b2',
    ]);
    expect(statements).to.deep.equal([['a1'], ['a2'], ['b1', 'b2']]);
  });
});
