/**
 * The right by which a reaction was started, asked for again while it runs and when it has ended:
 * before anything leaves for the outside, before tokens are made, before the answer (design section 1,
 * invariant 4). A script is never run twice, so a change of the configuration alone ends nothing.
 */
import type { Access } from '../../shared/access/access-rules.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CachedReactor } from '../config-cache/reactor-cache.ts';
import type { Exchange } from '../exchange.ts';
import { requireHeld } from '../routes/permit.ts';
import type { ReactingServices } from '../services.ts';
import { USE, UsedContainers } from '../used-containers.ts';
import { reactorNotFound } from './find-reactor.ts';

export class CallerRight {
  readonly #exchange: Exchange;
  readonly #services: ReactingServices;
  readonly #application: CachedApplication;
  readonly #reactor: CachedReactor;
  readonly #used = new UsedContainers();

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

  /** The caller's access; what it decides is remembered. */
  get access(): Access {
    return this.#used.watched(this.#application.access);
  }

  /**
   * The caller as it is now. Throws 401 when its key or its time is over, 403 when it could not have
   * used these tokens now, 404 when the reactor is gone.
   */
  async current(): Promise<CachedApplication> {
    const { applications, reactions, gate } = this.#services;
    const { tenant_id, config_version } = this.#application;
    const reading = await gate.read(tenant_id);
    const application =
      reading.config_version === config_version
        ? this.#application
        : await applications.refresh(this.#application, reading.config_version);
    if (application === undefined) throw this.#exchange.unauthorized();
    const { expires_at_ms } = application;
    if (expires_at_ms !== null && expires_at_ms <= reading.now_ms) {
      throw this.#exchange.unauthorized();
    }
    if (application === this.#application) return application;
    requireHeld(application, USE);
    this.#used.requireStill(application);
    const { reactor_id } = this.#reactor;
    const reactor = await reactions.reactors.at(tenant_id, reactor_id, application.config_version);
    if (reactor === undefined) throw reactorNotFound();
    return application;
  }
}
