/**
 * Listens on a Postgres channel with a connection of its own, for as long as the process lives.
 * Notices are hints: those sent while it reconnects are lost, and nothing depends on them.
 */
import pg from 'pg';
import type { Logger } from '../observability/logger.ts';

const RECONNECT_DELAY_MS = 1_000;

export interface Listener {
  close(): Promise<void>;
}

/** Calls `onNotice` with each payload. Reconnects by itself until closed. */
export function listen(
  connectionString: string,
  channel: string,
  onNotice: (payload: string) => void,
  log: Logger,
): Listener {
  let closed = false;
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function connect(): Promise<void> {
    const connecting = new pg.Client({
      connectionString,
      application_name: 'sallyport-notices',
      keepAlive: true,
    });
    client = connecting;
    let lost = false;
    const onLost = (error?: Error): void => {
      if (lost) return;
      lost = true;
      connecting.end().catch(() => {});
      if (closed) return;
      log.debug({ err: error }, 'notices lost; reconnecting');
      timer = setTimeout(() => void connect(), RECONNECT_DELAY_MS);
    };
    connecting.on('error', onLost);
    connecting.on('end', () => onLost());
    connecting.on('notification', ({ payload }) => {
      if (payload !== undefined) onNotice(payload);
    });
    try {
      await connecting.connect();
      await connecting.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
    } catch (error) {
      onLost(error as Error);
    }
  }

  void connect();
  return {
    async close() {
      closed = true;
      clearTimeout(timer);
      await client?.end().catch(() => {});
    },
  };
}
