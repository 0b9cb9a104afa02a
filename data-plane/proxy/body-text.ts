/** What the content type of a message says about its body, and the body as text and back. */

/** `form`: `application/x-www-form-urlencoded`. */
export type BodyKind = 'json' | 'form' | 'other';

const FORM_TYPE = 'application/x-www-form-urlencoded';
const JSON_TYPE = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/;
const BYTE_ORDER_MARK = '\ufeff';

/** Without its parameters: JSON is UTF-8 whatever they say (RFC 8259 section 8.1). */
export function bodyKind(contentType: string | undefined): BodyKind {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (JSON_TYPE.test(type)) return 'json';
  return type === FORM_TYPE ? 'form' : 'other';
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of UTF-8 bytes, a byte order mark included; `undefined` for any other bytes. */
export function utf8Text(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** How a body that a transform sees as text was made into it, so that it can be made back. */
export interface BodyText {
  readonly text: string;
  /** One character per byte, for what is no UTF-8: nothing is lost when it is passed on. */
  readonly isBytes: boolean;
}

export function readBodyText(body: Buffer): BodyText {
  const text = utf8Text(body);
  return text === undefined
    ? { text: body.toString('latin1'), isBytes: true }
    : { text, isBytes: false };
}

/** Bytes of a text that takes the place of a body: UTF-8, or as the body was where that can be. */
export function writeBodyText(text: string, { isBytes }: Pick<BodyText, 'isBytes'>): Buffer {
  const fits = isBytes && !/[^\0-\xff]/.test(text);
  return Buffer.from(text, fits ? 'latin1' : 'utf8');
}

/** Some servers send one before their JSON; no parser takes it for part of the text. */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}
