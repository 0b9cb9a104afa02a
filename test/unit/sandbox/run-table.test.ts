import { expect } from 'chai';
import fc from 'fast-check';
import { RunTable } from '../../../shared/sandbox/run-table.ts';

/** Few, and some of them a multiple of the table's size apart. */
const ids = fc
  .tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 0, max: 3 }))
  .map(([low, times]) => low + times * 1024);
const steps = fc.array(
  fc.record({ id: ids, run: fc.string(), kind: fc.constantFrom('set', 'delete', 'clear') }),
  { maxLength: 60 },
);

describe('the table of runs', () => {
  it('is a map of what was set and not deleted', () => {
    fc.assert(
      fc.property(steps, (given) => {
        const table = new RunTable<string>();
        const model = new Map<number, string>();
        for (const { id, run, kind } of given) {
          if (kind === 'set') {
            table.set(id, run);
            model.set(id, run);
          } else if (kind === 'delete') {
            expect(table.delete(id)).to.equal(model.delete(id));
          } else {
            table.clear();
            model.clear();
          }
          expect(table.size).to.equal(model.size);
          expect(table.values()).to.have.members([...model.values()]);
          expect([table.get(id), table.has(id)]).to.deep.equal([model.get(id), model.has(id)]);
        }
      }),
    );
  });

  it('takes the largest id there is', () => {
    const table = new RunTable<string>();
    table.set(2 ** 31 - 1, 'last');
    table.set(1, 'first');
    expect([table.get(2 ** 31 - 1), table.get(1)]).to.deep.equal(['last', 'first']);
  });
});
