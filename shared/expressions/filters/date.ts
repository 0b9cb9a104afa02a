/**
 * Liquid's `date` filter, in UTC whatever the time zone of the server. Input is seconds since 1970,
 * an ISO 8601 date or date-time, `March 14, 2016`, or `now`. Null stays null.
 */
import { ExpressionError } from '../expression-error.ts';
import { compileDateFormat } from './date-format.ts';
import { type Filter, filter, text } from './filter.ts';

/** Longest text that is read as a date; checked before any pattern runs. */
const DATE_TEXT_MAX = 40;

const SECONDS = /^\d{1,12}$/;
const ISO =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\s?(Z|UTC|[+-]\d\d:?\d\d)?)?$/;
const LONG = /^([A-Z][a-z]{2,8}) (\d{1,2}), (\d{4})$/;

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** Years that a format prints in four digits. */
const FIRST_MS = Date.UTC(1000, 0, 1);
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

function invalid(): ExpressionError {
  return new ExpressionError('A date is needed');
}

/** Minutes east of UTC. */
function offsetMinutes(zone: string | undefined): number {
  if (zone === undefined || zone === 'Z' || zone === 'UTC') return 0;
  const digits = zone.replace(':', '');
  const minutes = Number(digits.slice(1, 3)) * 60 + Number(digits.slice(3));
  return digits.startsWith('-') ? -minutes : minutes;
}

/** A day of the calendar, strictly: there is no February 30. `month` counts from 0. */
function dayMs(year: number, month: number, day: number): number {
  const ms = Date.UTC(year, month, day);
  const date = new Date(ms);
  if (date.getUTCMonth() !== month || date.getUTCDate() !== day) throw invalid();
  return ms;
}

function parseIso(match: RegExpExecArray): number {
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '0', zone] = match;
  const midnight = dayMs(Number(year), Number(month) - 1, Number(day));
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) throw invalid();
  const minutes = Number(hour) * 60 + Number(minute) - offsetMinutes(zone);
  const ms = Number(fraction.padEnd(3, '0').slice(0, 3));
  return midnight + minutes * 60_000 + Number(second) * 1000 + ms;
}

function parseDateText(value: string): number {
  if (value.length > DATE_TEXT_MAX) throw invalid();
  if (value === 'now' || value === 'today') return Date.now();
  if (SECONDS.test(value)) return Number(value) * 1000;
  const iso = ISO.exec(value);
  if (iso !== null) return parseIso(iso);
  const long = LONG.exec(value);
  if (long === null) throw invalid();
  const month = MONTHS.indexOf((long[1] ?? '').slice(0, 3).toLowerCase());
  return dayMs(Number(long[3]), month, Number(long[2]));
}

function toDate(input: unknown): Date {
  const ms = typeof input === 'number' ? input * 1000 : parseDateText(String(input));
  if (!(ms >= FIRST_MS && ms <= LAST_MS)) throw invalid();
  return new Date(ms);
}

const date = filter([text], (format) => {
  const print = compileDateFormat(format);
  return (input) => {
    if (input === null) return null;
    if (typeof input !== 'number' && typeof input !== 'string') throw invalid();
    return print(toDate(input));
  };
});

export const DATE_FILTERS: Readonly<Record<string, Filter>> = { date };
