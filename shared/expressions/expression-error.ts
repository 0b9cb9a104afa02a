/**
 * The one error of the expression language. Its message names what is wrong and where; it never
 * contains a literal of the source or a value of the data.
 */

/** A key of a mask may be long; the path in an error shows no more than this many characters. */
const PATH_SHOWN_MAX = 200;

interface ExpressionErrorPlace {
  /** Zero-based offset in the source, in UTF-16 units. */
  readonly position?: number | undefined;
  /** Dotted path of the leaf inside a mask, e.g. `mask.number`. */
  readonly path?: string | undefined;
}

/** A source that is not valid, or an evaluation that cannot go on. Callers answer 400 with it. */
export class ExpressionError extends Error {
  readonly position: number | undefined;
  readonly path: string | undefined;
  /** What is wrong, without the position. */
  readonly problem: string;

  constructor(problem: string, place: ExpressionErrorPlace = {}) {
    super(place.position === undefined ? problem : `${problem} (at character ${place.position})`);
    this.name = 'ExpressionError';
    this.problem = problem;
    this.position = place.position;
    this.path = place.path?.slice(0, PATH_SHOWN_MAX);
  }

  /** The same problem at a known position, unless it already has one. */
  at(position: number): ExpressionError {
    if (this.position !== undefined) return this;
    return new ExpressionError(this.problem, { position, path: this.path });
  }

  /** The same problem in the leaf of a mask that `path` names. */
  in(path: string): ExpressionError {
    return new ExpressionError(this.problem, { position: this.position, path });
  }
}
