/**
 * What one evaluation may still produce and do. Filters ask before they allocate, so a chain of
 * filters cannot blow up memory or time.
 */
import { ExpressionError } from './expression-error.ts';
import { OUTPUT_MAX, WORK_MIN, WORK_PER_OUTPUT } from './limits.ts';

/** One meter may serve several evaluations that share a limit, such as the leaves of a mask. */
export class Meter {
  /** Units of output that are left for all results together; also the bound of one value. */
  outputLeft: number;
  workLeft: number;

  /** `outputMax` in UTF-16 units of text (or list items). */
  constructor(outputMax: number = OUTPUT_MAX) {
    this.outputLeft = outputMax;
    this.workLeft = Math.max(WORK_MIN, outputMax * WORK_PER_OUTPUT);
  }

  /** Counts `units` of reading; throws when the evaluation has done too much. */
  work(units: number): void {
    this.workLeft -= units;
    if (this.workLeft < 0) throw new ExpressionError('The expression needs too much work');
  }

  /** Asks for an intermediate value of `units`, before it is made. */
  reserve(units: number): void {
    // Counted even when refused: measuring the value has cost something.
    this.work(Math.min(units, this.outputLeft));
    if (units > this.outputLeft) throw new ExpressionError('The result is too long');
  }

  /** Counts `units` of final output. */
  emit(units: number): void {
    if (units > this.outputLeft) throw new ExpressionError('The result is too long');
    this.outputLeft -= units;
  }

  /** True when nothing further can succeed, so that a caller need not try. */
  get exhausted(): boolean {
    return this.workLeft <= 0 || this.outputLeft <= 0;
  }
}
