/** A Node that does not know a flag ends at once, and with it every plane. */
import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { planeFlags } from '../../embedded/plane-flags.ts';

/** V8 has dropped it since. */
const ONLY_24 = '--scavenger-max-new-space-capacity-mb=8';

describe('the flags of a plane', () => {
  it('bound its memory on the Node that Sallyport brings along', () => {
    expect(planeFlags()).to.include(ONLY_24).and.include('--max-semi-space-size=16');
  });
  for (const version of [process.versions.node, '24.4.0', '25.9.0', '26.10.0']) {
    it(`of ${version} are known to the Node that runs`, () => {
      const run = spawnSync(process.execPath, [...planeFlags(version), '--version']);
      expect(run.stderr.toString()).to.equal('');
      expect(run.stdout.toString().trim()).to.equal(process.version);
    });
  }
  it('name nothing to a newer Node that only 24 knows', () => {
    for (const version of ['25.0.0', '26.10.0', '240.1.0']) {
      expect(planeFlags(version).join(' '), version).not.to.contain('capacity');
    }
  });
});
