/**
 * Place and room of one exchange. An engine may keep a request, with its body, until a connection is made or fails,
 * also when nobody waits for it any more: it has its place so long, and its body counts. Who comes and goes would fill
 * the memory else, and open any number of connections.
 */
import { BODY_ROOM } from '../../shared/http/body-room.ts';
import type { ExchangeWatcher, OutgoingRequest } from './exchange.ts';

export class Stay {
  readonly #watcher: ExchangeWatcher | undefined;
  /** Of a body that is all here. */
  readonly #bodyBytes: number;
  #keptBytes = 0;
  #isOver = false;

  constructor(body: OutgoingRequest['body'], watcher: ExchangeWatcher | undefined) {
    this.#watcher = watcher;
    this.#bodyBytes = Buffer.isBuffer(body) ? body.length : 0;
  }

  /** The request is about to be written. */
  begin(): void {
    this.#watcher?.onBegin();
  }

  /** It was aborted, and its engine has not let go of it: `over` is still to come. */
  waitInVain(): void {
    if (this.#isOver) return;
    this.#watcher?.onBegin();
    if (this.#keptBytes > 0) return;
    this.#keptBytes = this.#bodyBytes;
    BODY_ROOM.keep(this.#keptBytes);
  }

  /** Nothing of it needs anything any more; may be called again. */
  over(): void {
    this.#isOver = true;
    this.#watcher?.onOver();
    BODY_ROOM.leave(this.#keptBytes);
    this.#keptBytes = 0;
  }
}
