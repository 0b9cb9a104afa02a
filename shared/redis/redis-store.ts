/**
 * Redis as a cache that may be slow, hung or gone: every call has a budget of 100 ms, failures open a
 * breaker, and no call ever throws (design section 2).
 */
import { Redis } from 'ioredis';
import type { Logger } from '../observability/logger.ts';

/** A call may cost a request this much before Postgres is asked instead. */
const COMMAND_TIMEOUT_MS = 100;
/** After a failure no call is made for this long, so a hung Redis costs one budget a second. */
const BREAKER_OPEN_MS = 1_000;
const RECONNECT_DELAY_MAX_MS = 2_000;

export interface RedisStore {
  get(key: string): Promise<Buffer | undefined>;
  set(key: string, value: Buffer, lifetimeSeconds: number): Promise<void>;
  publish(channel: string, message: string): Promise<void>;
  /** Calls `onMessage` for each message until `close`; reconnects by itself. */
  subscribe(channel: string, onMessage: (message: string) => void): void;
  close(): void;
}

export function createRedisStore(url: string, log: Logger): RedisStore {
  const retryStrategy = (attempt: number): number =>
    Math.min(attempt * 100, RECONNECT_DELAY_MAX_MS);
  const client = new Redis(url, {
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: RECONNECT_DELAY_MAX_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy,
  });
  const subscribers: Redis[] = [];
  let openUntil = 0;
  let reported = false;

  const onError = (error: unknown): void => {
    openUntil = performance.now() + BREAKER_OPEN_MS;
    if (!reported) log.warn({ err: error }, 'Redis does not answer; going on without it');
    reported = true;
  };
  client.on('error', onError);

  async function attempt<T>(command: () => Promise<T>): Promise<T | undefined> {
    if (performance.now() < openUntil) return undefined;
    try {
      const result = await command();
      reported = false;
      return result;
    } catch (error) {
      onError(error);
      return undefined;
    }
  }

  return {
    get: async (key) => (await attempt(() => client.getBuffer(key))) ?? undefined,
    async set(key, value, lifetimeSeconds) {
      await attempt(() => client.set(key, value, 'EX', lifetimeSeconds));
    },
    async publish(channel, message) {
      await attempt(() => client.publish(channel, message));
    },
    subscribe(channel, onMessage) {
      const subscriber = new Redis(url, { maxRetriesPerRequest: null, retryStrategy });
      subscriber.on('error', () => {});
      subscriber.on('message', (_channel, message) => onMessage(message));
      void subscriber.subscribe(channel).catch(() => {});
      subscribers.push(subscriber);
    },
    close() {
      for (const one of [client, ...subscribers]) one.disconnect();
    },
  };
}
