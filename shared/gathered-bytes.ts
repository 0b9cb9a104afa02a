/**
 * Bytes that come in pieces and are needed whole. The sender chooses how large the pieces are, and five megabytes
 * of one byte each would be as many objects of two hundred: when there are many, small ones are copied together.
 */

/** So many are kept as they are, whatever their size: most messages have fewer. */
const PIECES_KEPT = 32;
/** From here on one is always kept as it is. */
const LARGE_PIECE = 4 * 1024;
const BLOCK = 64 * 1024;

export class GatheredBytes {
  #length = 0;
  readonly #pieces: Buffer[] = [];
  /** Where small pieces go: they stand between `#from` and `#to`; what is before is among the pieces. */
  #block = Buffer.alloc(0);
  #from = 0;
  #to = 0;

  get length(): number {
    return this.#length;
  }

  push(piece: Buffer): void {
    this.#length += piece.length;
    if (piece.length >= LARGE_PIECE || this.#pieces.length < PIECES_KEPT) {
      this.#seal();
      this.#pieces.push(piece);
      return;
    }
    if (this.#to + piece.length > this.#block.length) {
      this.#seal();
      this.#block = Buffer.allocUnsafeSlow(BLOCK);
      this.#from = 0;
      this.#to = 0;
    }
    this.#to += piece.copy(this.#block, this.#to);
  }

  /** All of them; a single one itself. */
  whole(): Buffer {
    this.#seal();
    const [only] = this.#pieces;
    if (only !== undefined && this.#pieces.length === 1) return only;
    return Buffer.concat(this.#pieces, this.#length);
  }

  #seal(): void {
    if (this.#to > this.#from) this.#pieces.push(this.#block.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}
