/** What one reader made of a connection, held against what another did. */
import { type Connection, PADDING } from './requests.ts';

/** A request as it should reach the destination. */
export interface Expected {
  readonly method: string;
  readonly target: string;
  /** Absent where the reader did not tell. */
  readonly body?: string | undefined;
}

export interface ClientAnswer {
  readonly status: number;
  /** The target that the destination says it was asked for; absent when the answer is not its. */
  readonly seen: string | undefined;
}

/** Path of the destination's URL. */
export const BASE = '/base';

/** What the destination should be asked for when `target` is sent; `undefined`: not for a proxy. */
export function targetBehindProxy(target: string): string | undefined {
  const match = /^\/proxy(?=[/?]|$)([^?]*)(?:\?(.*))?$/s.exec(target);
  if (match === null) return undefined;
  const [, path = '', query = ''] = match;
  const kept = query.split('&').filter((part) => nameOf(part) !== 'bt-proxy-key');
  const rest = kept.join('&');
  return BASE + (path === '/' ? '' : path) + (rest === '' ? '' : `?${rest}`);
}

function nameOf(part: string): string {
  const name = part.split('=')[0] ?? '';
  try {
    return decodeURIComponent(name.replaceAll('+', ' ')).trim().toLowerCase();
  } catch {
    return name;
  }
}

/** Answers on a connection, interim ones left out. No body of the test looks like a status line. */
export function readAnswers(text: string): ClientAnswer[] {
  return text
    .split(/(?=HTTP\/1\.[01] \d{3} )/)
    .map((answer) => ({
      status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1]),
      seen: /^x-seen: (.*)\r$/im.exec(`${answer.split('\r\n\r\n')[0]}\r\n`)?.[1],
    }))
    .filter(({ status }) => status >= 200);
}

/** Members of `few` that `many` has not, or not as often. */
export function missingFrom(many: readonly string[], few: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const one of many) counts.set(one, (counts.get(one) ?? 0) + 1);
  return few.filter((one) => {
    const count = counts.get(one) ?? 0;
    counts.set(one, count - 1);
    return count <= 0;
  });
}

export const keyOf = ({ method, target, body }: Expected): string =>
  body === undefined ? `${method} ${target}` : `${method} ${target} ${JSON.stringify(body)}`;

/** The number of the connection that a target was made for, if it still has it. */
export function connectionOf(text: string): number | undefined {
  const number = /\/c(\d+)-/.exec(text)?.[1];
  return number === undefined ? undefined : Number(number);
}

/** For a failure: everything that is needed to send the same again. */
export function replay(seed: number, problem: string, connection: Connection | undefined): string {
  const { number, bytes, cuts, mutations } = connection ?? {};
  return `seed ${seed}, connection ${number}: ${problem}
  done to it: ${mutations?.join(', ')}; cut at ${cuts?.join(', ') || 'no place'}
  bytes: ${JSON.stringify(bytes?.replace(PADDING, '<padding>'))}`;
}
