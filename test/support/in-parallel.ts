/** Work on many items, as fast as a server takes it and not all at once. */
const AT_A_TIME = 16;

/** Calls `use` for every item, at most so many at a time. */
export async function inParallel<T>(
  items: readonly T[],
  use: (item: T, index: number) => Promise<void>,
) {
  const left = [...items.entries()];
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      await use(next[1], next[0]);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
}
