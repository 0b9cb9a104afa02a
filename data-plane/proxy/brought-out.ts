/** Which texts of a request came out of the vault: what a destination should not answer back. */
import { hasOtherSpellings, otherSpellings } from './json-spellings.ts';
import { SoughtTexts } from './sought-texts.ts';

/** Shorter ones are in any answer. */
const TEXT_LENGTH_MIN = 8;
/** A hundred cards have a hundred numbers; each takes its turn on the event loop to be made ready. */
export const BROUGHT_OUT_TEXTS_MAX = 1_000;
/**
 * Of all texts together, each as it is and as JSON escapes it. So many bytes that have no beginnings in
 * common take 10 MiB and some 30 ms to be made ready; a hundred card numbers are 2 KiB.
 */
export const BROUGHT_OUT_BYTES_MAX = 256 * 1024;

/** Collects them, up to its bounds. */
export class BroughtOut {
  readonly #forms = new Set<string>();
  /** As JSON escapes them; only those that can be written in other ways, which most cannot. */
  #respelled: string[] | undefined;
  #texts = 0;
  #bytes = 0;

  /** There was more than can be looked for. */
  get isTooMuch(): boolean {
    return this.#texts > BROUGHT_OUT_TEXTS_MAX || this.#bytes > BROUGHT_OUT_BYTES_MAX;
  }

  get isEmpty(): boolean {
    return this.#texts === 0;
  }

  /** What to look for; not to be asked for when it is too much. */
  sought(): SoughtTexts {
    const forms = this.#respelled === undefined ? this.#forms : this.#allForms(this.#respelled);
    return new SoughtTexts([...forms].map((form) => Buffer.from(form)));
  }

  /** Other spellings as far as there is room: no request fails for the sake of those. */
  #allForms(respelled: readonly string[]): Set<string> {
    const forms = new Set(this.#forms);
    let bytes = this.#bytes;
    for (const escaped of respelled) {
      for (const spelling of otherSpellings(escaped)) {
        if (forms.has(spelling)) continue;
        bytes += Buffer.byteLength(spelling);
        if (bytes > BROUGHT_OUT_BYTES_MAX) return forms;
        forms.add(spelling);
      }
    }
    return forms;
  }

  /** The texts and numbers inside of a JSON value. */
  add(value: unknown): void {
    if (this.isTooMuch) return;
    if (typeof value === 'object' && value !== null) {
      for (const item of Object.values(value)) this.add(item);
    } else if (typeof value === 'string' || typeof value === 'number') {
      this.#addText(String(value));
    }
  }

  /** There is more of it than was looked at. */
  addTooMuch(): void {
    this.#bytes = Number.POSITIVE_INFINITY;
    this.#texts += 1;
    this.#forget();
  }

  #addText(text: string): void {
    if (text.length < TEXT_LENGTH_MIN || this.#forms.has(text)) return;
    this.#texts += 1;
    this.#bytes += text.length;
    // Before a text of megabytes is escaped.
    if (this.isTooMuch) {
      this.#forget();
      return;
    }
    this.#bytes += Buffer.byteLength(text) - text.length;
    this.#forms.add(text);
    const escaped = JSON.stringify(text).slice(1, -1);
    if (hasOtherSpellings(escaped)) {
      this.#respelled ??= [];
      this.#respelled.push(escaped);
    }
    if (escaped === text) return;
    this.#bytes += Buffer.byteLength(escaped);
    this.#forms.add(escaped);
  }

  #forget(): void {
    this.#forms.clear();
    this.#respelled = undefined;
  }
}
