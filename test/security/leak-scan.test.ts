/** The search that the canary tests rely on: what it cannot find would never be found. */
import { expect } from 'chai';
import { randomCardNumber } from '../support/card-numbers.ts';
import { createScanner, needlesOf } from './leak-scan.ts';

describe('the search for leaked values', () => {
  it('finds a value in every disguise', () => {
    const needles = needlesOf([['it', randomCardNumber()]]);
    const scan = createScanner(needles);
    for (const { name, bytes } of needles) {
      const hidden = Buffer.concat([Buffer.from('…"4242'), bytes, Buffer.from('4242"')]);
      expect(scan(hidden)).to.include(name);
    }
    const number = randomCardNumber();
    const scanText = createScanner(needlesOf([['it', number]]));
    for (const before of ['', 'a', 'ab', 'abc']) {
      const encoded = Buffer.from(`${before}${number}xyz`).toString('base64');
      expect(scanText(Buffer.from(encoded)).join()).to.contain('base64');
    }
    expect(scanText(Buffer.from(randomCardNumber()))).to.deep.equal([]);
  });
});
