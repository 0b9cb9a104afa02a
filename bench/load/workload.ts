/** What a load asks for: one form of request with a slot, and what goes into the slot. */
import { randomUUID } from 'node:crypto';
import type { Exchange } from './connection.ts';

export interface Workload {
  /**
   * The whole request; each `{}` is replaced by one of `values`, all of the same length. Before that, a
   * `FRESH` may stand for a text that is another one in every request.
   */
  readonly request: string;
  readonly status: number;
  /** What the answer's body must contain; may have the slot, too. */
  readonly contains: string;
  readonly values: readonly string[];
}

export const FRESH = '{fresh}';
/** Enough for any run. */
const FRESH_DIGITS = 12;

/** A function that draws an exchange at random: first a workload, then a value. */
export function drawFrom(workloads: readonly Workload[]): () => Exchange {
  const draws = workloads.map(drawFromOne);
  return () => {
    const draw = draws[Math.floor(Math.random() * draws.length)];
    if (draw === undefined) throw new Error('no workload');
    return draw();
  };
}

function freshTexts(): () => string {
  const prefix = randomUUID();
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${String(count).padStart(FRESH_DIGITS, '0')}`;
  };
}

function drawFromOne({ request, status, contains, values }: Workload): () => Exchange {
  const [before = '', after = ''] = request.split('{}');
  const [head = '', tail] = before.split(FRESH);
  const fresh = freshTexts();
  const [containsBefore = '', containsAfter] = contains.split('{}');
  return () => {
    const value = values[Math.floor(Math.random() * values.length)] ?? '';
    return {
      request: (tail === undefined ? head : head + fresh() + tail) + value + after,
      status,
      contains:
        containsAfter === undefined ? containsBefore : containsBefore + value + containsAfter,
    };
  };
}
