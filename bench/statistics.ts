/** The arithmetic of the bench. */

/** The middle value; the mean of the two middle ones of an even number. Needs one value at least. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) throw new Error('no values, no median');
  return (upper + lower) / 2;
}

/** The value below which `share` (0 to 1) of the values lie. `sorted` ascending, not empty. */
export function quantile(sorted: Float64Array, share: number): number {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  if (value === undefined) throw new Error('no values, no quantile');
  return value;
}
