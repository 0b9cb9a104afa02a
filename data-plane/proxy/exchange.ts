/**
 * One request to a destination over undici and the head of its answer. Nothing is repeated, redirected
 * or upgraded; a destination that does not begin its answer in time has none.
 */
import type { Dispatcher } from 'undici';
import { type BodySource, DestinationBody } from './destination-body.ts';
import type { RequestBody } from './request-body.ts';
import { Stay } from './stay.ts';

/** Facts 10.1. */
export const ANSWER_WITHIN_MS = 25_000;
/** RFC 9110 section 15.2 sets no limit; more than this is an attack on whoever waits. */
export const INFORMATIONAL_MAX = 16;

export interface OutgoingRequest {
  readonly origin: string;
  /** Path and query. */
  readonly target: string;
  readonly method: string;
  /** Names and values in turn, without Host and framing. */
  readonly headers: string[];
  readonly body: Buffer | RequestBody | undefined;
}

export interface DestinationAnswer {
  readonly status: number;
  /** Names and values in turn, as sent. */
  readonly headers: string[];
  readonly body: DestinationBody;
}

/** Why an exchange was ended on this side. */
export class ExchangeEnded extends Error {
  readonly reason: 'timeout' | 'caller_gone' | 'informational' | 'status' | 'revoked';

  constructor(reason: ExchangeEnded['reason'], options?: ErrorOptions) {
    super(`the exchange was ended: ${reason}`, options);
    this.name = 'ExchangeEnded';
    this.reason = reason;
  }
}

/** A request under way, whichever engine carries it. */
export interface Exchange {
  /** Rejects with whatever went wrong before the head of the answer was complete. */
  readonly answer: Promise<DestinationAnswer>;
  /** Ends it, before or after the head. */
  abort(error: ExchangeEnded): void;
}

/** Told how far an exchange has come. */
export interface ExchangeWatcher {
  /** The request is about to be written to a connection, or never will be. */
  onBegin(): void;
  /** Nothing of it needs a connection any more; may be called again. */
  onOver(): void;
}

/** `answerWithinMs`: from the end of the request to the end of the answer's head (DeadlineTimer). */
export function sendOverUndici(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
  request: OutgoingRequest,
  answerWithinMs = ANSWER_WITHIN_MS,
  watcher?: ExchangeWatcher,
): Exchange {
  const exchange = new UndiciExchange(request.body, answerWithinMs, watcher);
  const { origin, target, method, headers, body } = request;
  const isStream = body !== undefined && !Buffer.isBuffer(body);
  dispatcher.dispatch(
    {
      origin,
      path: target,
      method: method as Dispatcher.HttpMethod,
      // Without this undici chunks; a length that is known is announced.
      headers:
        isStream && body.length !== undefined
          ? [...headers, 'content-length', String(body.length)]
          : headers,
      body: body ?? null,
      // Its own would begin with a body that streams, and end the request in the middle of it.
      ...(isStream ? { headersTimeout: 0 } : undefined),
    },
    exchange,
  );
  return exchange;
}

class UndiciExchange implements Exchange, Dispatcher.DispatchHandler {
  readonly answer: Promise<DestinationAnswer>;
  #resolve: (answer: DestinationAnswer) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  readonly #timer: DeadlineTimer;
  readonly #stay: Stay;
  #controller: Dispatcher.DispatchController | undefined;
  #ended: ExchangeEnded | undefined;
  #body: DestinationBody | undefined;
  #informational = 0;

  constructor(
    body: OutgoingRequest['body'],
    answerWithinMs: number,
    watcher: ExchangeWatcher | undefined,
  ) {
    this.#stay = new Stay(body, watcher);
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#timer = new DeadlineTimer(body, answerWithinMs, () =>
      this.abort(new ExchangeEnded('timeout')),
    );
  }

  abort(error: ExchangeEnded): void {
    this.#ended = error;
    this.#timer.stop();
    this.#reject(error);
    if (this.#controller !== undefined) {
      this.#controller.abort(error);
      this.#stay.over();
    } else this.#stay.waitInVain();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended !== undefined) controller.abort(this.#ended);
    else this.#stay.begin();
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > INFORMATIONAL_MAX) this.abort(new ExchangeEnded('informational'));
      else if (status < 100) this.abort(new ExchangeEnded('status'));
      return;
    }
    this.#timer.stop();
    this.#body = new DestinationBody(new ControlledSource(controller));
    const headers = headerTexts(controller.rawHeaders);
    this.#resolve({ status, headers, body: this.#body });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#stay.over();
    this.#body?.end();
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#stay.over();
    this.#timer.stop();
    this.#reject(error);
    this.#body?.fail(error);
  }
}

class ControlledSource implements BodySource {
  readonly #controller: Dispatcher.DispatchController;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  pause(): void {
    this.#controller.pause();
  }

  resume(): void {
    this.#controller.resume();
  }

  abort(): void {
    this.#controller.abort(new ExchangeEnded('caller_gone'));
  }
}

/** How often, in the time it has, is looked whether a body that streams is still taken. */
const LOOKS = 8;

/**
 * Until the answer begins: from the end of the request. A body that streams must be taken meanwhile; a caller who
 * sends nothing of it is none of the destination's faults, and its connection is ended for that (slow-bodies.ts).
 */
export class DeadlineTimer {
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(body: OutgoingRequest['body'], ms: number, onTimeout: () => void) {
    if (body === undefined || Buffer.isBuffer(body)) {
      this.#timer = setTimeout(onTimeout, ms);
      return;
    }
    const look = (): void => {
      if (body.heldMs >= ms) onTimeout();
    };
    this.#timer = setInterval(look, ms / LOOKS);
    body.once('end', () => {
      clearTimeout(this.#timer);
      if (!this.#isStopped) this.#timer = setTimeout(onTimeout, ms);
    });
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}

/** Bytes above ASCII survive as latin1, which is how node:http writes them again. */
function headerTexts(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  const texts: string[] = [];
  for (const part of Array.isArray(raw) ? raw : []) {
    texts.push(typeof part === 'string' ? part : part.toString('latin1'));
  }
  return texts;
}
