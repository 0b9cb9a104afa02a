import { expect } from 'chai';
import { GatheredBytes } from '../../shared/gathered-bytes.ts';
import { Random } from '../support/random.ts';

describe('bytes that come in pieces', () => {
  it('are the same bytes, however they are cut', () => {
    const random = new Random(7);
    for (let round = 0; round < 200; round += 1) {
      const all = Buffer.from(
        Array.from({ length: random.below(120_000) }, () => random.below(256)),
      );
      const gathered = new GatheredBytes();
      const longest = random.pick([3, 100, 6_000, 90_000]);
      for (let at = 0; at < all.length; ) {
        const length = Math.min(random.below(longest), all.length - at);
        // What is handed over may be written to again by nobody but us.
        gathered.push(Buffer.from(all.subarray(at, at + length)));
        at += length;
      }
      expect(gathered.length).to.equal(all.length);
      expect(gathered.whole().equals(all)).to.equal(true);
    }
  });

  it('take about as much memory as they are long', () => {
    const gathered = new GatheredBytes();
    const bytes = 5 * 1024 * 1024;
    const before = process.memoryUsage();
    for (let index = 0; index < bytes; index += 1) gathered.push(Buffer.from([index & 0xff]));
    const after = process.memoryUsage();
    expect(gathered.length).to.equal(bytes);
    expect(gathered.whole()[1_000_000]).to.equal(1_000_000 & 0xff);
    const more = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
    // As many objects would be a gigabyte.
    expect(more).to.be.below(200 * 1024 * 1024);
  });

  it('are the piece itself when there is one, and empty when there is none', () => {
    const gathered = new GatheredBytes();
    expect(gathered.whole()).to.have.length(0);
    const only = Buffer.from('x');
    gathered.push(only);
    expect(gathered.whole()).to.equal(only);
  });
});
