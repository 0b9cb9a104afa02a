/**
 * Looks in a destination's answer for texts that were brought out of the vault for this very request,
 * also across the borders of pieces. Each byte is looked at once, however many texts there are. Pure;
 * masks keep lengths.
 */
import type { Needles } from './needles.ts';

const STAR = '*'.charCodeAt(0);

/** Bytes of the whole search, of which the first is 0. */
interface Range {
  start: number;
  end: number;
}

/** Finds where texts lie; those that overlap are one place. */
export class LeakSearch {
  readonly #needles: Needles;
  #state = 0;
  #length = 0;
  /** Places that may still grow or have not been taken, in order, apart from each other. */
  #places: Range[] = [];
  /** Of places, settled or not. */
  count = 0;

  constructor(needles: Needles) {
    this.#needles = needles;
  }

  /** How many of the bytes no text of the pieces to come can begin in. */
  get settled(): number {
    return this.#length - (this.#needles.depth[this.#state] as number);
  }

  /** Keeps no places: for whoever only counts. */
  look(piece: Uint8Array): void {
    this.push(piece);
    this.take(this.settled);
  }

  push(piece: Uint8Array): void {
    const needles = this.#needles;
    const { found } = needles;
    const before = this.#length;
    let state = this.#state;
    for (let index = 0; index < piece.length; index += 1) {
      state = needles.next(state, piece[index] as number);
      const length = found[state] as number;
      if (length !== 0) this.#mark(before + index + 1 - length, before + index + 1);
    }
    this.#state = state;
    this.#length += piece.length;
  }

  /** The places that begin before `until`; one that goes on behind it is kept, too. */
  take(until: number): readonly Range[] {
    const taken = this.#places.filter(({ start }) => start < until);
    this.#places = this.#places.filter(({ end }) => end > until);
    return taken;
  }

  /** Amortized one step: a place is swallowed once. */
  #mark(start: number, end: number): void {
    let first = start;
    for (let last = this.#places.at(-1); last !== undefined && last.end > start; ) {
      if (last.start <= start) {
        last.end = end;
        return;
      }
      first = Math.min(first, last.start);
      this.#places.pop();
      this.count -= 1;
      last = this.#places.at(-1);
    }
    this.#places.push({ start: first, end });
    this.count += 1;
  }
}

/** A body piece by piece: what a text may begin in is held back until it is sure that none does. */
export class MaskingStream {
  readonly #search: LeakSearch;
  readonly #held = new HeldBytes();
  #released = 0;

  constructor(needles: Needles) {
    this.#search = new LeakSearch(needles);
  }

  get count(): number {
    return this.#search.count;
  }

  /** What may go out now; may be empty, and may be the piece itself. */
  push(piece: Buffer): Buffer {
    this.#search.push(piece);
    return this.#release(piece, this.#search.settled);
  }

  /** The rest. */
  end(): Buffer {
    return this.#release(Buffer.alloc(0), this.#released + this.#held.length);
  }

  #release(piece: Buffer, until: number): Buffer {
    const length = until - this.#released;
    const held = this.#held.take(Math.min(length, this.#held.length));
    const rest = piece.subarray(length - held.length);
    const fresh = piece.subarray(0, length - held.length);
    // What is left is copied, since the piece is a part of what its connection reads into.
    this.#held.push(rest);
    const out = held.length === 0 ? fresh : Buffer.concat([held, fresh]);
    const places = this.#search.take(until);
    const masked = places.length > 0 && held.length === 0 ? Buffer.from(out) : out;
    for (const { start, end } of places) {
      masked.fill(
        STAR,
        Math.max(0, start - this.#released),
        Math.min(length, end - this.#released),
      );
    }
    this.#released = until;
    return masked;
  }
}

/** First in, first out; however small the pieces are, each byte is copied a few times at most. */
class HeldBytes {
  #bytes = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  push(piece: Buffer): void {
    if (this.#end + piece.length > this.#bytes.length) this.#makeRoom(piece.length);
    this.#end += piece.copy(this.#bytes, this.#end);
  }

  /** A copy. */
  take(length: number): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(this.#start, this.#start + length));
    this.#start += length;
    return taken;
  }

  #makeRoom(length: number): void {
    const held = this.#bytes.subarray(this.#start, this.#end);
    this.#bytes = Buffer.concat([held], 2 * (held.length + length));
    this.#start = 0;
    this.#end = held.length;
  }
}

/** A header's value, one character per byte. */
export function maskText(needles: Needles, latin1: string): { text: string; count: number } {
  const stream = new MaskingStream(needles);
  const out = [stream.push(Buffer.from(latin1, 'latin1')), stream.end()];
  const text = stream.count === 0 ? latin1 : Buffer.concat(out).toString('latin1');
  return { text, count: stream.count };
}
