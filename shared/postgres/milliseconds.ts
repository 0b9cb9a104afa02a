/**
 * Milliseconds since the epoch of a timestamptz in SQL, as a whole double: `extract` would compute with
 * decimals, which took a tenth of a one-row read.
 */
export const milliseconds = (expression: string): string =>
  `round(date_part('epoch', ${expression}) * 1000)`;
