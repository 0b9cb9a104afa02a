/** Rows as answers: what a resource does not have is left out of its answer, never null. */

/** The columns behind a resource: every optional member is a nullable column of the same name. */
export type RowOf<T> = { [K in keyof T]-?: Exclude<T[K], undefined> | null };

/** A copy of `row` without its null columns. */
export function omitNulls<T>(row: RowOf<T>): T {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as T;
}
