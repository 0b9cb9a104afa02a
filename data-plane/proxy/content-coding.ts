/** How the body of an answer is coded, as all of its headers together say. Pure. */

/** The codings that are undone here. */
export type KnownCoding = 'gzip' | 'x-gzip' | 'br' | 'deflate';

const KNOWN: ReadonlySet<string> = new Set<KnownCoding>(['gzip', 'x-gzip', 'br', 'deflate']);

/**
 * `identity` for a body that is not coded, `other` for what is not undone here: unknown codings, more
 * than one, and any of the transfer but chunks (RFC 9112 section 6.1), whose header does not go on.
 * Several headers are one list (RFC 9110 section 5.3): the first alone could hide the rest.
 */
export function contentCoding(headers: readonly string[]): KnownCoding | 'identity' | 'other' {
  const [coding, second] = codingsIn(headers, 'content-encoding');
  const ofTransfer = codingsIn(headers, 'transfer-encoding').filter((one) => one !== 'chunked');
  if (ofTransfer.length > 0 || second !== undefined) return 'other';
  if (coding === undefined) return 'identity';
  return KNOWN.has(coding) ? (coding as KnownCoding) : 'other';
}

/** Of all headers of that name, in lower case. */
function codingsIn(headers: readonly string[], name: string): string[] {
  const lists: string[] = [];
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const one = headers[index] as string;
    if (one.length !== name.length || one.toLowerCase() !== name) continue;
    lists.push(headers[index + 1] as string);
  }
  return lists
    .flatMap((list) => list.toLowerCase().split(','))
    .map((one) => one.trim())
    .filter((one) => one !== '' && one !== 'identity');
}
