/**
 * How the prelude and the host talk about cryptography: one line of JSON, a line feed, then the bytes, one
 * after the other, a character each. Everything that comes from inside is hostile; nothing but text goes
 * back, and of errors only class, code and a bounded message without received values.
 */

/** Bytes of one operation: more than any request or answer of a script, little for the host. */
export const INPUT_BYTES_MAX = 16 * 1024 * 1024;
/** The line of JSON: names, numbers and the lengths of the pieces. */
const HEAD_CHARACTERS_MAX = 256 * 1024;
const PIECES_MAX = 4_096;
const MESSAGE_CHARACTERS_MAX = 200;
/** How a piece is written when it is not a character per byte; Node decodes faster than code inside. */
const ENCODINGS = [
  ...['utf8', 'hex', 'base64', 'base64url'],
  ...['latin1', 'ascii', 'utf16le'],
] as const;

export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

export interface Answer {
  readonly value?: Json;
  readonly bytes?: readonly Uint8Array[];
}

/** Throws what the code inside shall see as an error of that class and code. */
export function refuse(code: string, message: string, ErrorClass: ErrorConstructor = Error): never {
  throw Object.assign(new ErrorClass(message), { code });
}

/** The arguments of one operation, read one by one; each reader throws when the argument is wrong. */
export class Question {
  readonly #values: readonly unknown[];
  readonly #pieces: readonly (Buffer | undefined)[];

  private constructor(values: readonly unknown[], pieces: readonly (Buffer | undefined)[]) {
    this.#values = values;
    this.#pieces = pieces;
  }

  /** `text`: `[[lengths…], ...values]`, a line feed, the pieces. */
  static parse(text: unknown): Question {
    if (typeof text !== 'string') return wrongArgument();
    if (text.length > INPUT_BYTES_MAX + HEAD_CHARACTERS_MAX) return tooLarge();
    const end = text.indexOf('\n');
    if (end < 0 || end > HEAD_CHARACTERS_MAX) return wrongArgument();
    const head: unknown = JSON.parse(text.slice(0, end));
    if (!Array.isArray(head)) return wrongArgument();
    const [lengths, ...values]: unknown[] = head;
    if (!Array.isArray(lengths) || lengths.length > PIECES_MAX) return wrongArgument();
    return new Question(values, cutPieces(lengths, text, end + 1));
  }

  value(index: number): unknown {
    return this.#values[index];
  }

  text(index: number, characters_max = 64): string {
    const value = this.#values[index];
    return typeof value === 'string' && value.length <= characters_max ? value : wrongArgument();
  }

  flag(index: number): boolean {
    return this.#values[index] === true;
  }

  integer(index: number, min: number, max: number): number {
    return integerOf(this.#values[index], min, max);
  }

  /** A member of the options at `index`; `undefined` when it is absent or null. */
  option(index: number, name: string): unknown {
    const options = this.#values[index];
    if (typeof options !== 'object' || options === null || !Object.hasOwn(options, name)) {
      return undefined;
    }
    return (options as Record<string, unknown>)[name] ?? undefined;
  }

  bytes(index: number): Buffer {
    return this.#pieces[index] ?? wrongArgument();
  }

  bytesOrNone(index: number): Buffer | undefined {
    return this.#pieces[index];
  }

  /** All pieces from `index` on as one. */
  rest(index: number): Buffer {
    const [first, ...others] = this.#pieces.slice(index);
    if (first === undefined) return Buffer.alloc(0);
    return others.length === 0
      ? first
      : Buffer.concat([first, ...others.map((piece) => piece ?? wrongArgument())]);
  }
}

/** `value` when it is an integer within the bounds. */
export function integerOf(value: unknown, min: number, max: number): number {
  if (typeof value !== 'number') return wrongArgument('ERR_INVALID_ARG_TYPE');
  if (!Number.isInteger(value) || value < min || value > max) {
    return refuse(
      'ERR_OUT_OF_RANGE',
      `A number must be an integer between ${min} and ${max} here.`,
      RangeError,
    );
  }
  return value;
}

/** `undefined` stays; any other value must be an integer within the bounds. */
export function integerOrNone(value: unknown, min: number, max: number): number | undefined {
  return value === undefined ? undefined : integerOf(value, min, max);
}

/** `undefined` stays; any other value must be a short text. */
export function textOrNone(value: unknown, characters_max = 64): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === 'string' && value.length <= characters_max ? value : wrongArgument();
}

export function wrongArgument(code = 'ERR_INVALID_ARG_VALUE'): never {
  return refuse(code, 'An argument is not of the kind it must be.', TypeError);
}

function tooLarge(): never {
  const message = `At most ${INPUT_BYTES_MAX} bytes may go into one operation.`;
  return refuse('ERR_OUT_OF_RANGE', message, RangeError);
}

function cutPieces(lengths: readonly unknown[], text: string, start: number) {
  let at = start;
  let total = 0;
  const pieces = lengths.map((entry) => {
    if (entry === null) return undefined;
    const [length, encoding]: unknown[] = Array.isArray(entry) ? entry : [entry, 'latin1'];
    const known = ENCODINGS.find((name) => name === encoding) ?? wrongArgument();
    const from = at;
    at += integerOf(length, 0, text.length - at);
    const piece = Buffer.from(text.slice(from, at), known);
    total += piece.length;
    return total > INPUT_BYTES_MAX ? tooLarge() : piece;
  });
  return at === text.length ? pieces : wrongArgument();
}

/** `[value, lengths…]`, a line feed, the bytes. */
export function writeAnswer({ value = null, bytes = [] }: Answer): string {
  const head = JSON.stringify([value, ...bytes.map(({ length }) => length)]);
  return `${head}\n${bytes.map((piece) => Buffer.from(piece).toString('latin1')).join('')}`;
}

/** An error as code inside may see it: `!` and JSON. */
export function writeFailure(error: unknown): string {
  const known = error instanceof Error ? error : new Error();
  const code = 'code' in known && typeof known.code === 'string' ? known.code : undefined;
  const name =
    known instanceof TypeError ? 'TypeError' : known instanceof RangeError ? 'RangeError' : 'Error';
  // Node's texts end with what was received; those without a code may come from anywhere.
  const told =
    (code !== undefined && !(known instanceof SyntaxError)) || known.constructor === Error;
  const text = told ? known.message.split(/ Received|\n/, 1)[0] : '';
  const message = text?.slice(0, MESSAGE_CHARACTERS_MAX) || 'The operation failed.';
  return `!${JSON.stringify({ name, code, message })}`;
}
