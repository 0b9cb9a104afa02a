/** The place in a list of logs from which the next page goes on, as text for clients. */

export interface LogPlace {
  /** Microseconds since the epoch, in digits. */
  readonly micros: string;
  readonly id: string;
}

const TEXT_LENGTH_MAX = 500;
const FORM = /^([0-9]{1,17})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

export function printCursor({ micros, id }: LogPlace): string {
  return Buffer.from(`${micros}.${id}`).toString('base64url');
}

/** `undefined` for what no page has handed out. */
export function parseCursor(text: string): LogPlace | undefined {
  if (text.length > TEXT_LENGTH_MAX) return undefined;
  const [, micros, id] = FORM.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? [];
  return micros === undefined || id === undefined ? undefined : { micros, id };
}
