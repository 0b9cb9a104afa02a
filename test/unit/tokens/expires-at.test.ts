import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import fc from 'fast-check';
import { parseExpiresAt } from '../../../shared/tokens/expires-at.ts';

const iso = (text: string): string | undefined => parseExpiresAt(text)?.toISOString();

describe('parseExpiresAt', () => {
  for (const [text, utc] of [
    ['8/26/2030 7:23:57 PM -07:00', '2030-08-27T02:23:57.000Z'],
    ['8/26/2030 7:23:57 PM', '2030-08-26T19:23:57.000Z'],
    ['8/26/2030 7:23:57 pm Z', '2030-08-26T19:23:57.000Z'],
    ['08/06/2030 07:23:57 AM +02:00', '2030-08-06T05:23:57.000Z'],
    ['1/2/2030 3:04:05 PM+02:00', '2030-01-02T13:04:05.000Z'],
    ['1/2/2030 12:00:00 AM', '2030-01-02T00:00:00.000Z'],
    ['1/2/2030 12:59:59 AM', '2030-01-02T00:59:59.000Z'],
    ['1/2/2030 12:00:00 PM', '2030-01-02T12:00:00.000Z'],
    ['1/2/2030 11:59:59 PM', '2030-01-02T23:59:59.000Z'],
    ['9/27/2030', '2030-09-27T00:00:00.000Z'],
    ['1/2/2030', '2030-01-02T00:00:00.000Z'],
    ['2030-01-02T03:04:05Z', '2030-01-02T03:04:05.000Z'],
    ['2030-01-02t03:04:05z', '2030-01-02T03:04:05.000Z'],
    ['2030-01-02T03:04:05', '2030-01-02T03:04:05.000Z'],
    ['2030-01-02T03:04', '2030-01-02T03:04:00.000Z'],
    ['2030-01-02', '2030-01-02T00:00:00.000Z'],
    ['2025-12-31T00:00:00+00:00', '2025-12-31T00:00:00.000Z'],
    ['2022-12-19T19:20:43.7334616+00:00', '2022-12-19T19:20:43.733Z'],
    ['2030-01-02T03:04:05.9Z', '2030-01-02T03:04:05.900Z'],
    ['2030-01-02T03:04:05.123456789-05:30', '2030-01-02T08:34:05.123Z'],
    ['2/29/2028', '2028-02-29T00:00:00.000Z'],
    ['2000-02-29', '2000-02-29T00:00:00.000Z'],
    ['1/1/2030 12:00:00 AM +14:00', '2029-12-31T10:00:00.000Z'],
    ['1/1/2030 12:00:00 AM -12:00', '2030-01-01T12:00:00.000Z'],
    ['12/31/9999 11:59:59 PM', '9999-12-31T23:59:59.000Z'],
    ['1/1/0001', '0001-01-01T00:00:00.000Z'],
    ['1/1/0099', '0099-01-01T00:00:00.000Z'],
    // Clocks change on these days in many zones; UTC knows nothing of it.
    ['3/31/2030 2:30:00 AM', '2030-03-31T02:30:00.000Z'],
    ['10/27/2030 2:30:00 AM', '2030-10-27T02:30:00.000Z'],
  ] as const) {
    it(`reads ${text}`, () => {
      expect(iso(text)).to.equal(utc);
    });
  }

  for (const text of [
    '',
    ' ',
    'tomorrow',
    '2/30/2030',
    '2/29/2030',
    '2/29/2100',
    '4/31/2030',
    '13/1/2030',
    '26/8/2030',
    '0/0/0',
    '0/1/2030',
    '1/0/2030',
    '1/32/2030',
    '1/1/30',
    '1/1/10000',
    '1/1/275761',
    '1/1/0000',
    '2030-02-30',
    '2030-13-01',
    '2030-00-10',
    '2030-1-2',
    '0000-01-01',
    '+275760-09-13',
    '-000001-01-01',
    '10000-01-01',
    '2030-01-02T24:00:00Z',
    '2030-01-02T23:60:00Z',
    '2030-01-02T23:59:60Z',
    '2030-01-02 03:04:05Z',
    '2030-01-02T03:04:05.Z',
    '2030-01-02T03:04:05.1234567890Z',
    '2030-01-02Z',
    '2030-01-02T03:04:05+0200',
    '2030-01-02T03:04:05+02',
    '1/1/2030 0:00:00 AM',
    '1/1/2030 13:00:00 PM',
    '1/1/2030 1:60:00 PM',
    '1/1/2030 1:00:60 PM',
    '1/1/2030 1:00:00',
    '1/1/2030 1:00 PM',
    '1/1/2030 12:00:00 AM +15:00',
    '1/1/2030 12:00:00 AM +14:01',
    '1/1/2030 12:00:00 AM -12:01',
    '1/1/2030 12:00:00 AM -13:00',
    '1/1/2030 12:00:00 AM +05:75',
    '1/1/2030 12:00:00 AM +05:60',
    '1/1/2030 12:00:00 AM +99:99',
    '1/1/2030 12:00:00 AM  +01:00',
    '1/1/2030 +01:00',
    '9999-12-31T23:59:59-00:01',
    '0001-01-01T00:00:00+00:01',
    ' 1/1/2030',
    '1/1/2030 ',
    '1/1/2030\n',
    '1/1/2030\0',
    '١/١/٢٠٣٠',
    '１/１/2030',
    '1e3',
    '1893456000000',
    '1/1/2030, 1/1/2031',
  ]) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      expect(parseExpiresAt(text)).to.equal(undefined);
    });
  }

  it('refuses long texts by their length alone', () => {
    for (const text of [
      '1'.repeat(1_000_000),
      `1/1/2030${' '.repeat(100_000)}`,
      '1/'.repeat(500_000),
    ]) {
      expect(parseExpiresAt(text)).to.equal(undefined);
    }
  });

  it('reads every instant that JavaScript prints', () => {
    const date = fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(date, (instant) => {
        expect(iso(instant.toISOString())).to.equal(instant.toISOString());
      }),
    );
  });

  it('accepts a day exactly when the calendar has it, in both forms alike', () => {
    const part = fc.tuple(
      fc.integer({ min: 1, max: 9999 }),
      fc.integer({ min: 0, max: 13 }),
      fc.integer({ min: 0, max: 32 }),
    );
    fc.assert(
      fc.property(part, ([year, month, day]) => {
        const four = String(year).padStart(4, '0');
        const two = (value: number): string => String(value).padStart(2, '0');
        const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
        const days = [0, 31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month] ?? 0;
        const expected =
          day >= 1 && day <= days ? `${four}-${two(month)}-${two(day)}T00:00:00.000Z` : undefined;
        expect(iso(`${four}-${two(month)}-${two(day)}`)).to.equal(expected);
        expect(iso(`${month}/${day}/${four}`)).to.equal(expected);
      }),
      { numRuns: 500 },
    );
  });

  it('gives the same instants wherever the server stands', () => {
    const script = `
      import { parseExpiresAt } from './shared/tokens/expires-at.ts';
      const texts = ['3/31/2030 2:30:00 AM', '1/2/2030', '2030-10-27T01:30:00', '2030-06-01'];
      console.log(texts.map((text) => parseExpiresAt(text).toISOString()).join());`;
    const root = new URL('../../..', import.meta.url);
    const seen = ['Asia/Kolkata', 'Europe/Berlin'].map((zone) =>
      execFileSync(process.execPath, ['--input-type=module', '-e', script], {
        cwd: root,
        env: { ...process.env, TZ: zone },
        encoding: 'utf8',
      }).trim(),
    );
    const utc =
      '2030-03-31T02:30:00.000Z,2030-01-02T00:00:00.000Z,2030-10-27T01:30:00.000Z,2030-06-01T00:00:00.000Z';
    expect(seen).to.deep.equal([utc, utc]);
  });
});
