/**
 * Finds the texts of a JSON body that hold expressions, and puts values in their place. The body is
 * never parsed and printed again: every byte outside of these texts stays as it came.
 */
import { isUtf8 } from 'node:buffer';
import { ApiError, fieldError } from '../../shared/errors.ts';
import { tooManyExpressions } from '../../shared/expressions/detokenization.ts';
import { DETOKENIZATION_EXPRESSIONS_MAX } from '../../shared/expressions/limits.ts';
import { JSON_DEPTH_MAX, scanPassedJson } from '../../shared/json-scan.ts';
import { stringifyJson } from '../../shared/json-text.ts';
import { type ExpressionTexts, KEPT } from './body-texts.ts';
import { memberPathAt } from './splice-json-path.ts';

/** As deep as the arguments of a reactor, whose `args` is one level. */
const DEPTH_MAX = JSON_DEPTH_MAX + 1;

/** `{{` as JSON can spell it; outside of strings it is no JSON. */
const OPENING = /(?:\{|\\u007[bB]){2}/g;
/** Without one of these there is none. Looked for in the bytes: most bodies need no more. */
const HINTS = ['{{', '\\u007b', '\\u007B'];

const BACKSLASH = 0x5c;

interface Place {
  readonly start: number;
  readonly end: number;
}

/**
 * `undefined` for a body without expressions, valid or not: it is passed on as it is. Throws 400 for
 * one that is not JSON (RFC 8259, UTF-8) and holds `{{`, and for more texts with `{{` than there may be
 * expressions. Names of members are never looked at.
 */
export function findJsonTexts(body: Buffer): ExpressionTexts | undefined {
  if (!HINTS.some((hint) => body.includes(hint))) return undefined;
  // A character per byte: all that is looked for is ASCII, and places are those of the bytes.
  const spelling = body.toString('latin1');
  let opening = nextOpening(spelling, 0);
  if (opening < 0) return undefined;
  if (!isUtf8(body)) throw new ApiError('bad_request', 'Invalid JSON: the body is not valid UTF-8');
  const places: Place[] = [];
  const texts: string[] = [];
  scanPassedJson(body, DEPTH_MAX, (start, end) => {
    // Openings in what has no value, names of members, are passed by.
    if (opening >= 0 && opening < start) opening = nextOpening(spelling, start);
    if (opening < 0 || opening >= end) return;
    const decoded: unknown = JSON.parse(body.toString('utf8', start, end));
    if (typeof decoded !== 'string' || !decoded.includes('{{')) return;
    if (places.length === DETOKENIZATION_EXPRESSIONS_MAX) {
      throw fieldError(memberPathAt(body, start), tooManyExpressions().message);
    }
    places.push({ start, end });
    texts.push(decoded);
  });
  if (places.length === 0) return undefined;
  return {
    texts,
    pathOf: (index) => memberPathAt(body, places[index]?.start ?? 0),
    splice: (values) => spliceJson(body, places, values),
  };
}

/** Where the next opening stands; -1: nowhere. */
function nextOpening(text: string, from: number): number {
  OPENING.lastIndex = from;
  let index = OPENING.exec(text)?.index ?? -1;
  while (index >= 0 && isEscaped(text, index)) {
    OPENING.lastIndex = index + 1;
    index = OPENING.exec(text)?.index ?? -1;
  }
  return index;
}

/** Whether what looks like an escape is an escaped backslash and what follows it. */
function isEscaped(text: string, index: number): boolean {
  if (text.charCodeAt(index) !== BACKSLASH) return false;
  let first = index;
  while (text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (index - first) % 2 === 1;
}

function spliceJson(body: Buffer, places: readonly Place[], values: readonly unknown[]): Buffer {
  const parts: Buffer[] = [];
  let copied = 0;
  places.forEach(({ start, end }, index) => {
    const value = values[index];
    if (value === KEPT) return;
    parts.push(body.subarray(copied, start), Buffer.from(stringifyJson(value)));
    copied = end;
  });
  parts.push(body.subarray(copied));
  return Buffer.concat(parts);
}
