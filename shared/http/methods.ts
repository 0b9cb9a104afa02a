/**
 * The HTTP methods this API speaks. The parser knows some thirty more (PROPFIND, QUERY, …); they
 * and TRACE, which would echo a request with its key, are answered 405.
 */

/** Value of the `Allow` header of a 405 (RFC 9110 section 15.5.6). */
export const ALLOW_HEADER = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** True for the methods named in {@link ALLOW_HEADER}; case-sensitive (RFC 9110 section 9.1). */
export function isServedMethod(method: string): boolean {
  switch (method) {
    case 'GET':
    case 'POST':
    case 'PATCH':
    case 'DELETE':
    case 'PUT':
    case 'HEAD':
    case 'OPTIONS':
      return true;
    default:
      return false;
  }
}
