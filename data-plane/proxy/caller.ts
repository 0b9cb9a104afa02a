/**
 * Who goes through which proxy, and by what right. Both are only cached: nothing leaves before the
 * version gate has confirmed them, and they are asked for again when a script has held things up
 * (design section 1, invariant 4).
 */
import type { Access } from '../../shared/access/access-rules.ts';
import type { ConfigReading } from '../../shared/config-entries/config-version.ts';
import { ApiError } from '../../shared/errors.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CachedProxy } from '../config-cache/proxy-cache.ts';
import { applicationAt } from '../current-application.ts';
import { recordDenial } from '../record-access.ts';
import { requireHeld } from '../routes/permit.ts';
import type { ProxyingServices } from '../services.ts';
import { USE, UsedContainers } from '../used-containers.ts';
import { StaleConfigError } from '../version-gate.ts';
import { ephemeralProxy } from './ephemeral.ts';
import type { ProxyRequest } from './read-request.ts';
import type { ProxyRight } from './transform-context.ts';

export class ProxyCaller implements ProxyRight {
  readonly proxy: CachedProxy;
  /** `undefined`: anybody who knows the key of the proxy. */
  readonly application: CachedApplication | undefined;
  /** Whether Postgres said, after the request arrived, that both are current. */
  confirmed = false;
  /** Whether the proxy was found to lead elsewhere by now, when the right was asked for again. */
  isMoved = false;
  readonly #services: ProxyingServices;
  readonly #used = new UsedContainers();

  constructor(
    proxy: CachedProxy,
    application: CachedApplication | undefined,
    services: ProxyingServices,
  ) {
    this.proxy = proxy;
    this.application = application;
    this.#services = services;
  }

  /** What the caller may use; remembered, to be asked for again. */
  get access(): Access | undefined {
    return this.application && this.#used.watched(this.application.access);
  }

  /** Throws 401 or 403 when the proxy wants more than the caller has. */
  requireRight(): void {
    if (!this.proxy.require_auth) return;
    if (this.application === undefined) throw unauthorized();
    requireHeld(this.application, USE);
    if (isEphemeral(this.proxy) && this.application.type !== 'private') {
      throw new ApiError('forbidden', 'BT-PROXY-URL needs the key of a private application');
    }
  }

  /** Throws `StaleConfigError` when the configuration moved on, 401 when the key's time is over. */
  confirm(reading: ConfigReading): void {
    if (!this.isAt(reading.config_version)) throw new StaleConfigError(reading);
    const expires_at_ms = this.application?.expires_at_ms ?? Infinity;
    if (expires_at_ms <= reading.now_ms) throw unauthorized();
    this.confirmed = true;
  }

  /** Whether both were read at this version. */
  isAt(version: string | null): boolean {
    const { proxy, application } = this;
    if (proxy.config_version !== version) return false;
    return application === undefined || application.config_version === version;
  }

  /** Both as they are by the reading. Throws 404 or 401 when one is gone. */
  async refreshed(reading: ConfigReading): Promise<ProxyCaller> {
    const application =
      this.application &&
      (await applicationAt(reading, this.application, this.#services, unauthorized));
    const proxy = await this.#refreshedProxy(reading.config_version, this.#services.proxying);
    if (proxy === undefined) throw proxyNotFound();
    return new ProxyCaller(proxy, application, this.#services);
  }

  /** Tells the audit trail when the error is a refusal to a valid key. */
  async recordDenial(error: unknown, traceId: string): Promise<void> {
    const { application, proxy } = this;
    if (application === undefined) return;
    const via = { type: 'proxy', id: proxy.proxy_id } as const;
    const attempt = { head: { traceId }, via, token_id: null };
    await recordDenial(error, attempt, application, this.#services);
  }

  async current(): Promise<void> {
    const reading = await this.#services.gate.read(this.proxy.tenant_id);
    const now = await this.refreshed(reading);
    if (this.isAt(reading.config_version)) return;
    // The one request goes on with what it was decided on; only the right to it must still be there, and nothing
    // goes to where the proxy led before.
    this.isMoved ||= now.proxy.destination_url !== this.proxy.destination_url;
    now.requireRight();
    if (now.application !== undefined) this.#used.requireStill(now.application);
  }

  async #refreshedProxy(
    version: string | null,
    { proxies }: ProxyingServices['proxying'],
  ): Promise<CachedProxy | undefined> {
    if (this.proxy.config_version === version) return this.proxy;
    if (!isEphemeral(this.proxy)) return proxies.refresh(this.proxy, version);
    return version === null ? undefined : { ...this.proxy, config_version: version };
  }
}

/**
 * The caller as last known; a promise only where something must be loaded. Throws 404 for an unknown
 * proxy and for one of another tenant, 401 for an API key that is not known, also where none is needed:
 * whoever sends one means to act with it.
 */
export function findCaller(
  request: ProxyRequest,
  apiKey: string | undefined,
  services: ProxyingServices,
): ProxyCaller | Promise<ProxyCaller> {
  if (apiKey === undefined) return callerWith(undefined, request, services);
  const callerOf = (application: CachedApplication | undefined) => {
    if (application === undefined) throw unauthorized();
    return callerWith(application, request, services);
  };
  const { applications } = services;
  const known = applications.cached(apiKey);
  return known === undefined ? applications.load(apiKey).then(callerOf) : callerOf(known);
}

/** The same for an application that is known already. */
export function callerWith(
  application: CachedApplication | undefined,
  { proxyKey, url }: ProxyRequest,
  services: ProxyingServices,
): ProxyCaller | Promise<ProxyCaller> {
  const { proxying } = services;
  if (proxyKey === undefined) {
    const proxy = ephemeralProxy(url, application, proxying);
    if (application === undefined || proxy === undefined) throw unauthorized();
    return new ProxyCaller(proxy, application, services);
  }
  const callerOf = (proxy: CachedProxy | undefined) => {
    const isForeign = application !== undefined && application.tenant_id !== proxy?.tenant_id;
    if (proxy === undefined || isForeign) throw proxyNotFound();
    return new ProxyCaller(proxy, application, services);
  };
  const { proxies } = proxying;
  const known = proxies.cached(proxyKey);
  return known === undefined ? proxies.load(proxyKey).then(callerOf) : callerOf(known);
}

/** A configuration that changes faster than a request can be decided is a fault, not a queue. */
const ATTEMPTS_MAX = 8;

/** Runs `decide` until it was decided on the tenant's current configuration, refusals included. */
export async function decideCurrently<T>(
  found: ProxyCaller,
  decide: (caller: ProxyCaller) => Promise<T>,
  { gate }: Pick<ProxyingServices, 'gate'>,
  traceId: string,
): Promise<{ caller: ProxyCaller; decided: T }> {
  let caller = found;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    let reading: ConfigReading;
    try {
      const decided = await decide(caller);
      if (caller.confirmed) return { caller, decided };
      reading = await gate.read(caller.proxy.tenant_id);
      caller.confirm(reading);
      return { caller, decided };
    } catch (error) {
      if (error instanceof StaleConfigError) reading = error.reading;
      else if (caller.confirmed || !(error instanceof ApiError)) {
        await caller.recordDenial(error, traceId);
        throw error;
      } else {
        // A refusal by what is only cached: it stands if the cache is current.
        reading = await gate.read(caller.proxy.tenant_id);
        if (caller.isAt(reading.config_version)) {
          caller.confirm(reading);
          await caller.recordDenial(error, traceId);
          throw error;
        }
      }
    }
    caller = await caller.refreshed(reading);
  }
  throw new ApiError('unavailable', 'The configuration keeps changing; try again', {
    headers: { 'retry-after': '1' },
  });
}

const isEphemeral = (proxy: CachedProxy): boolean => proxy.slot === '';

function unauthorized(): ApiError {
  return new ApiError('unauthorized', 'A missing or invalid BT-API-KEY was provided');
}

function proxyNotFound(): ApiError {
  return new ApiError('not_found', 'The proxy does not exist');
}
