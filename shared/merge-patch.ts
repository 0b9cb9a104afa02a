/**
 * JSON Merge Patch (RFC 7396). Pure: neither input is changed, and a member named `__proto__` is
 * only ever data, never a prototype.
 */

/**
 * The value that `target` becomes under `patch` (RFC 7396 section 2): objects merge member by
 * member, `null` in a patch removes, everything else (arrays too) replaces. Parts that the patch
 * does not touch are shared with the inputs, not copied. Recursion is as deep as `patch`.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  // Spreading defines own members one by one, so an own `__proto__` stays an own member.
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) delete result[name];
    else setOwn(result, name, mergePatch(ownValue(result, name), change));
  }
  return result;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function ownValue(object: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function setOwn(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') {
    object[name] = value;
    return;
  }
  const own = { value, writable: true, enumerable: true, configurable: true };
  Object.defineProperty(object, name, own);
}
