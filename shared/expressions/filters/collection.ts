/** Liquid's filters that look into the items of a list: order, select, add up. */
import { ExpressionError } from '../expression-error.ts';
import { pathReader } from '../read-path.ts';
import { toList } from './array.ts';
import {
  anything,
  type BoundFilter,
  type Filter,
  filter,
  optional,
  readNumber,
  text,
} from './filter.ts';

/** Comparisons of a sort per item, roughly the logarithm of the largest list. */
const SORT_WORK = 16;

type ReadItem = (item: unknown) => unknown;

/** A reader of `name` or `a.b` in an item; the item itself when there is no name. */
function itemReader(property: string): ReadItem {
  return pathReader(property === '' ? [] : property.split('.'));
}

/** Numbers before texts before booleans, nothing at the end; others keep their order. */
function rank(value: unknown): number {
  if (typeof value === 'number') return 0;
  if (typeof value === 'string') return 1;
  if (typeof value === 'boolean') return 2;
  return value === null || value === undefined ? 4 : 3;
}

function compare(left: unknown, right: unknown): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  if (typeof left === 'string' && typeof right === 'string') {
    if (left === right) return 0;
    return left < right ? -1 : 1;
  }
  return rank(left) - rank(right);
}

function sortBy(fold: (value: unknown) => unknown): (property: string) => BoundFilter {
  return (property) => {
    const read = itemReader(property);
    return (input, meter) => {
      const list = toList(input, meter);
      meter.reserve(list.length);
      meter.work(list.length * SORT_WORK);
      const keyed = list.map((item) => ({ item, key: fold(read(item)) }));
      return keyed.sort((left, right) => compare(left.key, right.key)).map(({ item }) => item);
    };
  };
}

function foldCase(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase() : value;
}

const map = filter([text], (property) => {
  const read = itemReader(property);
  return (input, meter) => {
    const list = toList(input, meter);
    meter.reserve(list.length);
    return list.map(read);
  };
});

const sum = filter([optional(text, '')], (property) => {
  const read = itemReader(property);
  return (input, meter) => {
    let total = 0;
    for (const item of toList(input, meter)) {
      const value = readNumber(read(item) ?? null);
      if (value === undefined) throw new ExpressionError('Every item must be a number');
      total += value;
    }
    if (!Number.isFinite(total)) throw new ExpressionError('The result is not a number');
    return total;
  };
});

/** Does the item have the wanted value, or, when none is given, one that is not nil or false? */
function matcher(property: string, wanted: unknown): (item: unknown) => boolean {
  const read = itemReader(property);
  if (wanted !== undefined) return (item) => read(item) === wanted;
  return (item) => {
    const value = read(item);
    return value !== null && value !== undefined && value !== false;
  };
}

type Matches = (item: unknown) => boolean;

function search(apply: (list: readonly unknown[], matches: Matches) => unknown): Filter {
  return filter([text, optional(anything, undefined)], (property, wanted) => {
    const matches = matcher(property, wanted);
    return (input, meter) => apply(toList(input, meter), matches);
  });
}

export const COLLECTION_FILTERS: Readonly<Record<string, Filter>> = {
  map,
  sum,
  sort: filter(
    [optional(text, '')],
    sortBy((value) => value),
  ),
  sort_natural: filter([optional(text, '')], sortBy(foldCase)),
  where: search((list, matches) => list.filter(matches)),
  reject: search((list, matches) => list.filter((item) => !matches(item))),
  find: search((list, matches) => list.find(matches) ?? null),
  has: search((list, matches) => list.some(matches)),
  find_index: search((list, matches) => {
    const index = list.findIndex(matches);
    return index < 0 ? null : index;
  }),
};
