/**
 * Looks in a destination's answer for values that were brought out of the vault for this very request,
 * as they are and as JSON escapes them, also across the borders of pieces. Pure; masks keep lengths.
 */

const STAR = '*'.charCodeAt(0);

export interface Found {
  /** The same bytes when nothing was masked. */
  readonly bytes: Buffer;
  readonly count: number;
}

export class Needles {
  readonly #needles: readonly Buffer[];
  /** Of the longest one, in bytes. */
  readonly longest: number;

  constructor(secrets: readonly string[]) {
    const forms = new Set(secrets.flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]));
    this.#needles = [...forms].map((form) => Buffer.from(form));
    this.longest = Math.max(0, ...this.#needles.map((needle) => needle.length));
  }

  /** Where values lie: beginnings and ends, in no order, overlapping ones each. */
  find(bytes: Buffer): [start: number, end: number][] {
    const ranges: [number, number][] = [];
    for (const needle of this.#needles) {
      for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1)) {
        ranges.push([at, at + needle.length]);
      }
    }
    return ranges;
  }

  /** A header's value, one character per byte. */
  maskText(latin1: string): { text: string; count: number } {
    const { bytes, count } = this.mask(Buffer.from(latin1, 'latin1'));
    return { text: count === 0 ? latin1 : bytes.toString('latin1'), count };
  }

  mask(bytes: Buffer): Found {
    const ranges = this.find(bytes);
    if (ranges.length === 0) return { bytes, count: 0 };
    const masked = Buffer.from(bytes);
    for (const [start, end] of ranges) masked.fill(STAR, start, end);
    return { bytes: masked, count: ranges.length };
  }
}

/** A body piece by piece: the end of each piece is held back until it is sure that no value begins there. */
export class MaskingStream {
  readonly #needles: Needles;
  #held: Buffer = Buffer.alloc(0);
  /** How much of what is held belongs to a value whose beginning has gone out, masked. */
  #maskedUntil = 0;
  count = 0;

  constructor(needles: Needles) {
    this.#needles = needles;
  }

  /** What may go out now; may be empty. */
  push(piece: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    return this.#release(bytes, Math.max(0, bytes.length - this.#needles.longest + 1));
  }

  /** The rest. */
  end(): Buffer {
    return this.#release(this.#held, this.#held.length);
  }

  #release(bytes: Buffer, length: number): Buffer {
    let maskedUntil = this.#maskedUntil;
    const out = Buffer.from(bytes.subarray(0, length));
    out.fill(STAR, 0, Math.min(maskedUntil, length));
    for (const [start, end] of this.#needles.find(bytes)) {
      // One that begins in what is held back is found again with the next piece.
      if (start >= length) continue;
      this.count += 1;
      out.fill(STAR, start, Math.min(end, length));
      maskedUntil = Math.max(maskedUntil, end);
    }
    this.#maskedUntil = Math.max(0, maskedUntil - length);
    // A copy: the piece is a part of what its connection reads into.
    this.#held = Buffer.from(bytes.subarray(length));
    return out;
  }
}
