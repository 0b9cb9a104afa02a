/**
 * Container paths: the slash-delimited groups that tokens live in and access rules speak about.
 * A path is compared only in its normal form, and only on segment boundaries.
 */

/** Code units of a path. Room for every real hierarchy; keeps the columns and indexes small. */
export const CONTAINER_LENGTH_MAX = 400;

/** Segments of a path: more is a mistake or an attack, real hierarchies have two to five. */
export const CONTAINER_SEGMENTS_MAX = 20;

/** Code units of one segment: a UUID with a prefix fits well. */
export const CONTAINER_SEGMENT_LENGTH_MAX = 100;

export const ROOT_CONTAINER = '/';

/** What a refused path is answered with; it does not repeat the path. */
export const CONTAINER_PROBLEM =
  'A container must start and end with "/", have no empty segment, use only letters, digits, ' +
  `"-" and "_", and have at most ${CONTAINER_SEGMENTS_MAX} segments of at most ` +
  `${CONTAINER_SEGMENT_LENGTH_MAX} characters and ${CONTAINER_LENGTH_MAX} characters in all`;

const SEGMENT = /^[A-Za-z0-9_-]+$/;

/**
 * The normal form of a path (lower case, facts 5.2), or undefined when it is not one. `.`, `%`, `*`
 * and every other character outside of `[A-Za-z0-9_-]` are refused, so no path can climb, escape or
 * act as a wildcard.
 */
export function normaliseContainer(path: string): string | undefined {
  if (path.length > CONTAINER_LENGTH_MAX) return undefined;
  if (path === ROOT_CONTAINER) return path;
  if (path.length < 3 || !path.startsWith('/') || !path.endsWith('/')) return undefined;
  const segments = path.slice(1, -1).split('/');
  if (segments.length > CONTAINER_SEGMENTS_MAX) return undefined;
  for (const segment of segments) {
    if (segment.length > CONTAINER_SEGMENT_LENGTH_MAX || !SEGMENT.test(segment)) return undefined;
  }
  // Only ASCII letters are left, so this is the same in every locale.
  return path.toLowerCase();
}

/**
 * Whether `container` is `prefix` or lies inside it (facts 3.3). Both must be in normal form: the
 * closing slash of the prefix is what keeps `/pci/` from covering `/pcix/`.
 */
export function containerCovers(prefix: string, container: string): boolean {
  return container.startsWith(prefix);
}
