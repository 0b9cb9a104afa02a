/**
 * Reads `expires_at` (spec: Token expiration; facts 5.6). Every form names one instant whatever time
 * zone the server runs in; what is not exactly one of the forms is refused, never guessed.
 */

/** The longest form is 35 characters; anything longer is refused before a pattern sees it. */
const LENGTH_MAX = 40;

/** Offsets in use on Earth, in minutes: -12:00 to +14:00. */
const OFFSET_MIN = -12 * 60;
const OFFSET_MAX = 14 * 60;

/** `8/26/2030`, `8/26/2030 7:23:57 PM`, `8/26/2030 7:23:57 PM -07:00`, and with `Z`. */
const US_FORM =
  /^(\d{1,2})\/(\d{1,2})\/(\d{4})(?: (\d{1,2}):(\d{2}):(\d{2}) ([AP]M)(?: ?(Z|[+-]\d{2}:\d{2}))?)?$/i;

/** `2030-08-26`, and date-times with `Z`, with offset, or without (UTC); seconds optional. */
const ISO_FORM =
  /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}:\d{2})?)?$/i;

interface WallClock {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  millisecond: number;
  /** Of the wall clock east of UTC, as written; undefined is UTC. */
  offset: string | undefined;
}

/**
 * The instant, or undefined when the text is none of the forms, names a day or time that does not
 * exist, or lies outside of the years 1 to 9999 in UTC. Without offset the time is UTC, without time
 * it is midnight UTC. Fractions finer than a millisecond are cut off. Past instants are returned
 * too: only the database's clock knows what is past.
 */
export function parseExpiresAt(text: string): Date | undefined {
  if (text.length > LENGTH_MAX) return undefined;
  const clock = readUsForm(text) ?? readIsoForm(text);
  return clock === undefined ? undefined : toInstant(clock);
}

function readUsForm(text: string): WallClock | undefined {
  const match = US_FORM.exec(text);
  if (match === null) return undefined;
  const [, month, day, year, hour, minute, second, half, offset] = match;
  const clock = {
    year: Number(year),
    month: Number(month),
    day: Number(day),
    millisecond: 0,
    offset,
  };
  if (hour === undefined) return { ...clock, hour: 0, minute: 0, second: 0 };
  const hourOfHalf = Number(hour);
  if (hourOfHalf < 1 || hourOfHalf > 12) return undefined;
  // 12 AM is midnight, 12 PM is noon.
  const hours = (hourOfHalf % 12) + (half?.toUpperCase() === 'PM' ? 12 : 0);
  return { ...clock, hour: hours, minute: Number(minute), second: Number(second) };
}

function readIsoForm(text: string): WallClock | undefined {
  const match = ISO_FORM.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '', offset] = match;
  return {
    year: Number(year),
    month: Number(month),
    day: Number(day),
    hour: Number(hour),
    minute: Number(minute),
    second: Number(second),
    millisecond: Number(fraction.slice(0, 3).padEnd(3, '0')),
    offset,
  };
}

function toInstant(clock: WallClock): Date | undefined {
  const offsetMinutes = readOffset(clock.offset);
  if (offsetMinutes === undefined) return undefined;
  if (clock.hour > 23 || clock.minute > 59 || clock.second > 59) return undefined;
  const instant = new Date(0);
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  instant.setUTCFullYear(clock.year, clock.month - 1, clock.day);
  // A day that does not exist has rolled over into another month.
  if (instant.getUTCMonth() !== clock.month - 1 || instant.getUTCDate() !== clock.day) {
    return undefined;
  }
  instant.setUTCHours(clock.hour, clock.minute - offsetMinutes, clock.second, clock.millisecond);
  const year = instant.getUTCFullYear();
  return year >= 1 && year <= 9999 ? instant : undefined;
}

/** Minutes east of UTC, or undefined for an offset that no place has. */
function readOffset(offset: string | undefined): number | undefined {
  if (offset === undefined || offset.toUpperCase() === 'Z') return 0;
  const minutes = Number(offset.slice(4));
  if (minutes > 59) return undefined;
  const size = Number(offset.slice(1, 3)) * 60 + minutes;
  const total = offset.startsWith('-') ? -size : size;
  return total >= OFFSET_MIN && total <= OFFSET_MAX ? total : undefined;
}
