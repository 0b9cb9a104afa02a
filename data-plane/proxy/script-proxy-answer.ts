/** What a script is answered to a call of a proxy: JSON text, the body as text where it is text. */
import { readBodyText } from './body-text.ts';

/** `{"status", "headers": [name, value, …], "body" or "base64"}`. */
export function scriptAnswerText(status: number, headers: readonly string[], body: Buffer): string {
  const plain = headers.filter(
    (_, index) => headers[index - (index % 2)]?.toLowerCase() !== 'content-encoding',
  );
  const { text, isBytes } = readBodyText(body);
  const content = isBytes ? { base64: body.toString('base64') } : { body: text };
  return JSON.stringify({ status, headers: plain, ...content });
}
