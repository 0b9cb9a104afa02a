/** What a callback is sent of an answer: always JSON, since it says so. */
import type { Answer } from '../exchange.ts';

/**
 * The body of the answer. A custom response of a type of its own is sent as JSON text, one without a body
 * as an empty object.
 */
export function callbackBody({ body, headers }: Answer): string {
  if (body === undefined) return '{}';
  const isJson = headers === undefined || !headers.includes('content-type') || isJsonText(body);
  return isJson ? body : JSON.stringify(body);
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
