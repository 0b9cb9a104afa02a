/**
 * What the prelude asks of the host and has answered at once: text in, text out. Customer code cannot
 * reach these but through the prelude; they must still take anything and throw nothing.
 */
import { answerCrypto } from './answer-crypto.ts';
import { answerUrl } from './answer-url.ts';

/** `undefined`: no answer. What it costs is bounded by the service: V8's time limit does not see it. */
export type NativeService = (first: unknown, second: unknown) => string | undefined;

/** Services without state, by the operation's name. */
const SERVICES: Readonly<Record<string, NativeService>> = {
  crypto: answerCrypto,
  url: answerUrl,
};

/** Answers `operation`; `undefined` too when there is no such service. */
export function answerNative(
  operation: string,
  first: unknown,
  second: unknown,
): string | undefined {
  return Object.hasOwn(SERVICES, operation) ? SERVICES[operation]?.(first, second) : undefined;
}
