import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { skipUnlessLinux } from '../support/skip.ts';

const SCRIPT = fileURLToPath(new URL('few-descriptors.ts', import.meta.url));

describe('a gateway that has no descriptors left for a sandbox host', () => {
  it('leaves none open when it cannot start one, and starts it when there are some', async function () {
    skipUnlessLinux(this, 'descriptors are counted in /proc');
    this.timeout(60_000);
    const command = ['-c', 'ulimit -n 96 && exec "$@"', 'sh', process.execPath, SCRIPT];
    const { stdout } = await promisify(execFile)('/bin/sh', command);
    const { before, after, result } = JSON.parse(stdout);
    expect(result).to.deep.equal({ kind: 'ok', value: '1' });
    expect(after - before).to.be.within(-2, 2);
  });
});
