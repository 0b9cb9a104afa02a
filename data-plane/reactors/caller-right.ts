/**
 * The right by which a reaction was started, asked for again while it runs and when it has ended:
 * before each call out, before tokens are made, before the answer (design section 1,
 * invariant 4). A script is never run twice, so a change of the configuration alone ends nothing.
 */
import type { Access } from '../../shared/access/access-rules.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CachedReactor } from '../config-cache/reactor-cache.ts';
import { applicationAt } from '../current-application.ts';
import type { Exchange } from '../exchange.ts';
import type { AccessOrigin } from '../record-access.ts';
import { requireHeld } from '../routes/permit.ts';
import type { ReactingServices } from '../services.ts';
import { USE, UsedContainers, type UsedTransforms } from '../used-containers.ts';
import { reactorNotFound } from './find-reactor.ts';

/**
 * A right that was confirmed less than this before an answer leaves was confirmed for it: no more than a turn of
 * the event loop takes under load, which lies between every other answer and its reading, too.
 */
const RECENT_MS = 20;

export class CallerRight {
  readonly #exchange: Exchange;
  readonly #services: ReactingServices;
  readonly #application: CachedApplication;
  readonly #reactor: CachedReactor;
  readonly #used = new UsedContainers();
  #confirmedAt_ms = Number.NEGATIVE_INFINITY;

  constructor(
    exchange: Exchange,
    application: CachedApplication,
    reactor: CachedReactor,
    services: ReactingServices,
  ) {
    this.#exchange = exchange;
    this.#application = application;
    this.#reactor = reactor;
    this.#services = services;
  }

  /** Where what is done by this right comes from, for the audit trail. */
  get origin(): AccessOrigin {
    return { head: this.#exchange.head, via: { type: 'reactor', id: this.#reactor.reactor_id } };
  }

  /** What was decided for the caller so far. */
  get used(): UsedTransforms {
    return this.#used.transforms;
  }

  /** The caller's access; what it decides is remembered. */
  get access(): Access {
    return this.#used.watched(this.#application.access);
  }

  /**
   * As `current`, unless that is known from a moment ago: for the answer of a script that was quick, used no
   * token and called nothing.
   */
  recent(): undefined | Promise<unknown> {
    const isRecent = performance.now() - this.#confirmedAt_ms < RECENT_MS;
    return isRecent && this.#exchange.callingRun === undefined ? undefined : this.current();
  }

  /** The exchange's caller was confirmed by a reading that was asked for at this time, of `performance.now()`. */
  confirmedAt(at_ms: number): void {
    this.#confirmedAt_ms = at_ms;
  }

  /**
   * The caller as it is now. Throws 401 when its key or its time is over, 403 when it could not have
   * used these tokens now, 404 when the reactor is gone; the same when that holds for the run that
   * calls, since whatever comes of this one is that one's.
   */
  current(): Promise<CachedApplication> {
    // Whoever asks lets something out, or brings something in: the answer is asked for by itself again.
    this.#confirmedAt_ms = Number.NEGATIVE_INFINITY;
    const { callingRun } = this.#exchange;
    const own = this.#own();
    if (callingRun === undefined) return own;
    return Promise.all([own, callingRun.right.current()]).then(([application]) => application);
  }

  async #own(): Promise<CachedApplication> {
    const { reactions, gate } = this.#services;
    const { tenant_id } = this.#application;
    const reading = await gate.read(tenant_id);
    const unauthorized = () => this.#exchange.unauthorized();
    const found = applicationAt(reading, this.#application, this.#services, unauthorized);
    const application = found instanceof Promise ? await found : found;
    if (application === this.#application) return application;
    requireHeld(application, USE);
    this.#used.requireStill(application);
    const { reactor_id } = this.#reactor;
    const reactor = await reactions.reactors.at(tenant_id, reactor_id, application.config_version);
    if (reactor === undefined) throw reactorNotFound();
    return application;
  }
}
