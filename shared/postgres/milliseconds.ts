/** Milliseconds since the epoch of a timestamptz in SQL, as a double: cheaper to read than a bigint. */
export const milliseconds = (expression: string): string =>
  `(extract(epoch FROM ${expression}) * 1000)::float8`;
