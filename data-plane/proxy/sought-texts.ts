/**
 * The texts that are looked for in one answer. Nearly every answer is small, has none of them and needs no
 * more than a look by Node's own search: to make an automaton ready for it took a quarter of a request.
 */
import { Needles } from './needles.ts';

/** Within these the look takes 3 ms at worst, 1 µs for a usual answer: Boyer and Moore, text by text. */
const LOOK_TEXTS_MAX = 16;
const LOOK_TEXT_BYTES_MAX = 64;
const LOOK_BYTES_MAX = 16 * 1024;

export class SoughtTexts {
  readonly #texts: readonly Buffer[];
  readonly #areFew: boolean;
  #needles: Needles | undefined;

  /** None of the texts is empty. How many bytes they are together is for the caller to bound. */
  constructor(texts: readonly Buffer[]) {
    this.#texts = texts;
    this.#areFew =
      texts.length <= LOOK_TEXTS_MAX && texts.every(({ length }) => length <= LOOK_TEXT_BYTES_MAX);
  }

  /** Made ready when they are first asked for. */
  get needles(): Needles {
    this.#needles ??= new Needles(this.#texts);
    return this.#needles;
  }

  /** Whether surely none of the texts is in these bytes; false where that takes a real search. */
  areMissingFrom(bytes: Buffer): boolean {
    if (!this.#areFew || bytes.length > LOOK_BYTES_MAX) return false;
    return !this.#texts.some((text) => bytes.includes(text));
  }
}
