/** Short forms for the tests of the expression language. */
import { compileTemplate } from '../../../shared/expressions/compile.ts';
import { ExpressionError } from '../../../shared/expressions/expression-error.ts';

/** The value of a template over `data` (and other variables). */
export function evaluate(source: string, data?: unknown, others: Record<string, unknown> = {}) {
  return compileTemplate(source).evaluate({ data, ...others });
}

/** The ExpressionError of a template; anything else thrown, or no error, fails the test. */
export function problemOf(source: string, data?: unknown): ExpressionError {
  try {
    evaluate(source, data);
  } catch (error) {
    if (error instanceof ExpressionError) return error;
    throw error;
  }
  throw new Error('Expected an ExpressionError');
}
