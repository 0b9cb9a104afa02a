/**
 * Reading a path from JSON data. Only own members are visible: `constructor`, `__proto__`, `length`
 * and everything inherited read as null.
 */

export type Step = string | number;

/** One member. Lists know `size`, `first`, `last` (Liquid); text and scalars have no members. */
export function readMember(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) return readListMember(value, name);
  if (!Object.hasOwn(value, name)) return null;
  return (value as Record<string, unknown>)[name] ?? null;
}

function readListMember(list: readonly unknown[], name: string): unknown {
  if (name === 'size') return list.length;
  if (name === 'first') return readItem(list, 0);
  if (name === 'last') return readItem(list, -1);
  return null;
}

/** One item of a list; a negative index counts from the end (Liquid). */
export function readItem(value: unknown, index: number): unknown {
  if (!Array.isArray(value)) return null;
  return value[index < 0 ? value.length + index : index] ?? null;
}

function readStep(value: unknown, step: Step): unknown {
  return typeof step === 'string' ? readMember(value, step) : readItem(value, step);
}

/** A reader of `steps` below its argument, specialised for the short paths that are common. */
export function pathReader(steps: readonly Step[]): (value: unknown) => unknown {
  const [first, second] = steps;
  if (first === undefined) return (value) => value ?? null;
  if (typeof first === 'string' && second === undefined) return (value) => readMember(value, first);
  if (typeof first === 'string' && typeof second === 'string' && steps.length === 2) {
    return (value) => readMember(readMember(value, first), second);
  }
  return (value) => {
    let found = value;
    for (const step of steps) found = readStep(found, step);
    return found;
  };
}
