import { expect } from 'chai';
import { onceASecond } from '../../../shared/observability/once-a-second.ts';

describe('lines of an outage', () => {
  it('are written at once, then counted into the line of the next second', () => {
    const realNow = performance.now;
    let now = 5_000;
    performance.now = () => now;
    try {
      const lines: [string, number][] = [];
      const write = onceASecond<string>((latest, count) => lines.push([latest, count]));
      write('first');
      for (let i = 0; i < 100; i += 1) write(`more ${i}`);
      expect(lines).to.deep.equal([['first', 1]]);
      now += 1_000;
      write('last');
      expect(lines).to.deep.equal([
        ['first', 1],
        ['last', 101],
      ]);
    } finally {
      performance.now = realNow;
    }
  });
});
