/**
 * strftime in UTC, compiled. Only the directives below, with bounded widths; anything else in a
 * format is an error, so a format cannot ask for a huge result.
 */
import { ExpressionError } from '../expression-error.ts';

/** Longest format; real ones are under 40 characters. */
const FORMAT_MAX = 200;

/** Widest padding of one directive; nanoseconds need 9. */
const WIDTH_MAX = 30;

/** Flags, width, letter (strftime(3) of glibc, as Ruby and Liquid read it). */
const DIRECTIVE = /%([-_0^#:]{0,4})(\d{0,8})([A-Za-z%])|%/g;

const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const DAY_MS = 86_400_000;

interface Directive {
  readonly print: (date: Date) => string | number;
  readonly width?: number;
  readonly fill?: ' ';
}

function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / DAY_MS) + 1;
}

/** Weeks that start on `first` (0 Sunday, 1 Monday); days before the first such day are week 0. */
function weekOfYear(date: Date, first: number): number {
  return Math.floor((dayOfYear(date) - 1 - ((date.getUTCDay() - first + 7) % 7) + 7) / 7);
}

function hour12(date: Date): number {
  return date.getUTCHours() % 12 || 12;
}

function monthName(date: Date): string {
  return MONTHS[date.getUTCMonth()] ?? '';
}

function dayName(date: Date): string {
  return DAYS[date.getUTCDay()] ?? '';
}

function halfDay(date: Date): string {
  return date.getUTCHours() < 12 ? 'AM' : 'PM';
}

const DIRECTIVES: ReadonlyMap<string, Directive> = new Map<string, Directive>([
  ['a', { print: (date) => dayName(date).slice(0, 3), fill: ' ' }],
  ['A', { print: dayName, fill: ' ' }],
  ['b', { print: (date) => monthName(date).slice(0, 3), fill: ' ' }],
  ['h', { print: (date) => monthName(date).slice(0, 3), fill: ' ' }],
  ['B', { print: monthName, fill: ' ' }],
  ['C', { print: (date) => Math.floor(date.getUTCFullYear() / 100), width: 2 }],
  ['d', { print: (date) => date.getUTCDate(), width: 2 }],
  ['e', { print: (date) => date.getUTCDate(), width: 2, fill: ' ' }],
  ['H', { print: (date) => date.getUTCHours(), width: 2 }],
  ['I', { print: hour12, width: 2 }],
  ['j', { print: dayOfYear, width: 3 }],
  ['k', { print: (date) => date.getUTCHours(), width: 2, fill: ' ' }],
  ['l', { print: hour12, width: 2, fill: ' ' }],
  ['L', { print: (date) => date.getUTCMilliseconds(), width: 3 }],
  ['m', { print: (date) => date.getUTCMonth() + 1, width: 2 }],
  ['M', { print: (date) => date.getUTCMinutes(), width: 2 }],
  ['n', { print: () => '\n' }],
  ['N', { print: (date) => `${String(date.getUTCMilliseconds()).padStart(3, '0')}000000` }],
  ['p', { print: halfDay, fill: ' ' }],
  ['P', { print: (date) => halfDay(date).toLowerCase(), fill: ' ' }],
  ['s', { print: (date) => Math.floor(date.getTime() / 1000) }],
  ['S', { print: (date) => date.getUTCSeconds(), width: 2 }],
  ['t', { print: () => '\t' }],
  ['u', { print: (date) => date.getUTCDay() || 7 }],
  ['U', { print: (date) => weekOfYear(date, 0), width: 2 }],
  ['w', { print: (date) => date.getUTCDay() }],
  ['W', { print: (date) => weekOfYear(date, 1), width: 2 }],
  ['y', { print: (date) => date.getUTCFullYear() % 100, width: 2 }],
  ['Y', { print: (date) => date.getUTCFullYear(), width: 4 }],
  ['z', { print: () => '+0000' }],
  ['Z', { print: () => 'UTC', fill: ' ' }],
  ['%', { print: () => '%' }],
]);

/** Directives that stand for a format, in the C locale. */
const COMPOSITES: ReadonlyMap<string, string> = new Map([
  ['c', '%a %b %e %H:%M:%S %Y'],
  ['D', '%m/%d/%y'],
  ['F', '%Y-%m-%d'],
  ['r', '%I:%M:%S %p'],
  ['R', '%H:%M'],
  ['T', '%H:%M:%S'],
  ['x', '%m/%d/%y'],
  ['X', '%H:%M:%S'],
]);

type Print = (date: Date) => string;

function compileDirective(flags: string, width: string, letter: string): Print {
  const composite = COMPOSITES.get(letter);
  if (composite !== undefined && flags === '' && width === '') return compileDateFormat(composite);
  const directive = DIRECTIVES.get(letter);
  if (directive === undefined || Number(width) > WIDTH_MAX) {
    throw new ExpressionError('The date format has an unknown directive or is too wide');
  }
  let fill: string = flags.includes('_') ? ' ' : (directive.fill ?? '0');
  if (flags.includes('0')) fill = '0';
  const length = flags.includes('-') ? 0 : Number(width) || (directive.width ?? 0);
  return (date) => {
    let text = String(directive.print(date));
    if (letter === 'z' && flags.includes(':')) text = '+00:00';
    if (letter === 'N' && width !== '') text = text.slice(0, length);
    if (flags.includes('^') || flags.includes('#')) text = text.toUpperCase();
    return letter === 'N' ? text.padEnd(length, '0') : text.padStart(length, fill);
  };
}

/** A printer of dates in UTC for a strftime format. Throws for an unknown or too wide directive. */
export function compileDateFormat(format: string): Print {
  if (format.length > FORMAT_MAX) throw new ExpressionError('The date format is too long');
  const prints: Print[] = [];
  let index = 0;
  for (const match of format.matchAll(DIRECTIVE)) {
    const text = format.slice(index, match.index);
    prints.push(() => text);
    prints.push(compileDirective(match[1] ?? '', match[2] ?? '', match[3] ?? ''));
    index = match.index + match[0].length;
  }
  const rest = format.slice(index);
  return (date) => prints.map((print) => print(date)).join('') + rest;
}
