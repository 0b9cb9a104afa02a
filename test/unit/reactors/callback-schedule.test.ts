import { expect } from 'chai';
import {
  DELIVERIES_MAX,
  RETRY_AFTER_MS_MAX,
  readRetryAfter,
  retryDelayMs,
} from '../../../data-plane/reactors/callback-schedule.ts';

describe('the schedule of callbacks', () => {
  const HOUR_MS = 3_600_000;

  it('is ten retries, each about twice as late as the last, over about 2.5 hours', () => {
    expect(DELIVERIES_MAX).to.equal(11);
    for (let round = 0; round < 200; round += 1) {
      const waits = Array.from({ length: 10 }, (_, index) => retryDelayMs(index + 1, undefined));
      const total = waits.reduce((sum, wait) => sum + wait, 0);
      expect(total / HOUR_MS).to.be.within(2.2, 2.9);
      waits.slice(1).forEach((wait, index) => {
        expect(wait / (waits[index] as number)).to.be.within(1.6, 2.5);
      });
    }
    const first = new Set(Array.from({ length: 20 }, () => retryDelayMs(1, undefined)));
    expect(first.size).to.be.greaterThan(10);
  });

  it('waits as long as the receiver asks for, never less than by itself, at most an hour', () => {
    expect(retryDelayMs(1, 60_000)).to.equal(60_000);
    expect(retryDelayMs(10, 1)).to.be.greaterThan(HOUR_MS);
    expect(retryDelayMs(1, 10 * HOUR_MS)).to.equal(RETRY_AFTER_MS_MAX);
    expect(RETRY_AFTER_MS_MAX).to.equal(HOUR_MS);
  });

  it('reads Retry-After in both forms, and nothing else', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    const cases: [string | undefined, number | undefined][] = [
      ['120', 120_000],
      [' 0 ', 0],
      ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
      ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
      ['99999999999', undefined],
      ['-1', undefined],
      ['1.5', undefined],
      ['1e3', undefined],
      ['2026-01-01', undefined],
      ['Thu, nonsense', undefined],
      ['', undefined],
      [undefined, undefined],
    ];
    for (const [text, expected] of cases) {
      expect(readRetryAfter(text, now), text).to.equal(expected);
    }
  });
});
