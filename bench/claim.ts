/** What a claim of the bench is and what it finds. Judges figures; measures nothing. */
import type { Lab } from './lab.ts';

/** What a figure must be, in its own unit. */
export type Target = { atLeast: number } | { atMost: number };

export interface Finding {
  /** What was compared with what, as a line of the table. */
  readonly title: string;
  /** `x` is a ratio. */
  readonly unit: 'x' | 'MiB' | 's' | 'ms' | '/s';
  readonly value: number;
  /** Unset: reported, not judged. */
  readonly target?: Target;
  /** The same figure of each round alone: the spread tells how far `value` can be trusted. */
  readonly rounds: readonly number[];
  /** What the figure was made of, for the reader of the results file. */
  readonly details: Readonly<Record<string, number>>;
}

export interface Claim {
  /** Word on the command line: `npm run bench -- <name>`. */
  readonly name: string;
  measure(lab: Lab): Promise<Finding[]>;
}

export function isMet({ value, target }: Pick<Finding, 'value' | 'target'>): boolean {
  if (target === undefined) return true;
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost;
}
