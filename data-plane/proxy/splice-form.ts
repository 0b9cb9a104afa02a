/**
 * Finds the fields of a form body whose values hold expressions, and puts values in their place,
 * encoded for it. All other fields stay byte for byte as they came.
 */
import { fieldError } from '../../shared/errors.ts';
import { DETOKENIZATION_EXPRESSIONS_MAX } from '../../shared/expressions/limits.ts';
import { memberPath } from '../../shared/json-member-path.ts';
import { stringifyJson } from '../../shared/json-text.ts';
import { utf8Text } from './body-text.ts';
import { type ExpressionTexts, KEPT } from './body-texts.ts';

/** `{{` as a form can spell it. */
const OPENING = /(?:\{|%7[bB]){2}/g;
const HINTS = ['{', '%7b', '%7B'];
const ROOT = 'body';
const PLUS = 0x2b;
const SPACE = 0x20;

interface Field {
  /** Of the encoded value. */
  readonly start: number;
  readonly end: number;
  /** Encoded. */
  readonly name: string;
}

/**
 * `undefined` for a body without expressions in values. Throws 400 for a value with expressions that
 * is not percent-encoded UTF-8, and for more fields with braces than there may be expressions.
 */
export function findFormTexts(body: Buffer): ExpressionTexts | undefined {
  if (!HINTS.some((hint) => body.includes(hint))) return undefined;
  // One character per byte, so that nothing changes that is not touched.
  const text = body.toString('latin1');
  const fields: Field[] = [];
  const texts: string[] = [];
  let visited = 0;
  for (let at = nextOpening(text, 0); at >= 0; ) {
    const field = fieldAt(text, at);
    visited += 1;
    if (visited > DETOKENIZATION_EXPRESSIONS_MAX) throw tooManyFields();
    const value = text.slice(field.start, field.end);
    if (nextOpening(value, 0) >= 0) {
      fields.push(field);
      texts.push(decodeValue(value, field));
    }
    at = nextOpening(text, field.end);
  }
  if (fields.length === 0) return undefined;
  return {
    texts,
    pathOf: (index) => pathOf(fields[index]),
    splice: (values) => spliceForm(text, fields, values),
  };
}

function nextOpening(text: string, from: number): number {
  OPENING.lastIndex = from;
  return OPENING.exec(text)?.index ?? -1;
}

/** The field around a position. Without `=` all of it is a name, and the value is nothing. */
function fieldAt(text: string, position: number): Field {
  const start = text.lastIndexOf('&', position) + 1;
  const next = text.indexOf('&', position);
  const end = next < 0 ? text.length : next;
  const field = text.slice(start, end);
  const equals = field.indexOf('=');
  if (equals < 0) return { start: end, end, name: field };
  return { start: start + equals + 1, end, name: field.slice(0, equals) };
}

function decodeValue(value: string, field: Field): string {
  const decoded = decode(value);
  if (decoded !== undefined) return decoded;
  throw fieldError(pathOf(field), 'The value with an expression is not percent-encoded UTF-8');
}

/** `undefined` for what is not percent-encoded UTF-8. */
function decode(encoded: string): string | undefined {
  const bytes = Buffer.from(encoded, 'latin1');
  // In place: to replace millions in a text takes half a second.
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at] === PLUS) bytes[at] = SPACE;
  // Bytes that a client left as they are may be UTF-8 too.
  const text = utf8Text(bytes);
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function pathOf(field: Field | undefined): string {
  return memberPath(ROOT, decode(field?.name ?? '') ?? '');
}

function tooManyFields(): Error {
  return fieldError(ROOT, `More than ${DETOKENIZATION_EXPRESSIONS_MAX} fields with expressions`);
}

function spliceForm(text: string, fields: readonly Field[], values: readonly unknown[]): Buffer {
  const parts: string[] = [];
  let copied = 0;
  fields.forEach(({ start, end }, index) => {
    const value = values[index];
    if (value === KEPT) return;
    parts.push(text.slice(copied, start), encodeFormText(formText(value)));
    copied = end;
  });
  parts.push(text.slice(copied));
  return Buffer.from(parts.join(''), 'latin1');
}

/** The text of a JSON value in a form: objects and lists are compact JSON, null is nothing. */
export function formText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null || value === undefined ? '' : stringifyJson(value);
}

/** As the URL standard writes a name or a value of a form. */
export function encodeFormText(text: string): string {
  return new URLSearchParams([[text, '']]).toString().slice(0, -1);
}
