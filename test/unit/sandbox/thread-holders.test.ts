import { fstatSync, writeSync } from 'node:fs';
import { expect } from 'chai';
import { HOLDER_BYTES } from '../../../shared/sandbox/protocol.ts';
import { ThreadHolders } from '../../../shared/sandbox/thread-holders.ts';

describe('the holders of threads', () => {
  it('are read from a file without a name, which has its room from the start', () => {
    const holders = new ThreadHolders(4);
    const descriptor = holders.descriptor ?? -1;
    const { size, nlink } = fstatSync(descriptor);
    expect([size, nlink]).to.deep.equal([4 * HOLDER_BYTES, 0]);
    writeSync(descriptor, Int32Array.of(7), 0, HOLDER_BYTES, 2 * HOLDER_BYTES);
    expect(holders.readAndClose()).to.deep.equal([7]);
    expect(() => fstatSync(descriptor)).to.throw('EBADF');
  });
});
