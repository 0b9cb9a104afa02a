/**
 * `fetch` and `https.request` of scripts, carried out in the gateway: the sandbox has no network. Every
 * connection comes from the egress guard. It must never give a script more than the response, nor
 * a tenant more than its share; what a sandbox host says is read as if an attacker wrote it.
 */
import type { Egress } from '../egress/create-egress.ts';
import {
  type BeforeSend,
  type ExchangeLimits,
  exchange,
  type FetchCall,
} from './script-fetch-exchange.ts';
import { fetchError, readableFailure } from './script-fetch-failure.ts';
import { readFetchRequest } from './script-fetch-request.ts';
import { type Held, type ShareLimits, TenantFetches } from './script-fetch-share.ts';
import type { ScriptService } from './script-services.ts';

export interface ScriptFetchLimits extends ExchangeLimits, ShareLimits {
  /** A whole fetch, redirects and waiting for its turn included. */
  readonly totalMs: number;
  /** Between two pieces of a response's body. */
  readonly silenceMs: number;
}

export const SCRIPT_FETCH_LIMITS: ScriptFetchLimits = {
  // Attacks C-12 row 176: a destination that drips does not hold a run for its 30 s.
  headersMs: 10_000,
  silenceMs: 10_000,
  // What a destination of a proxy has (facts 10.1).
  totalMs: 25_000,
  // Twice the largest request; a run has 128 MiB for what it makes of it.
  responseBytesMax: 10 * 1024 * 1024,
  // Ten fetches at a time of a dozen runs; more runs of one tenant take turns.
  tenantRequestsMax: 128,
  tenantWaitingMax: 1_024,
  // Six of the largest responses, nine of the largest requests; thousands of usual ones.
  tenantBytesMax: 64 * 1024 * 1024,
  bytesMax: 512 * 1024 * 1024,
};

export interface ScriptFetch {
  /**
   * The service of one tenant's runs. `beforeSend`: awaited before each request, redirects included,
   * when it is its turn; a rejection ends the fetch, as a ScriptCallError with what it says.
   */
  fetchFor(tenant_id: string, beforeSend?: BeforeSend): ScriptService;
  /** Ends what is under way and closes all connections. */
  close(): Promise<void>;
}

interface Tenant {
  readonly fetches: TenantFetches;
  /** Forgets the tenant, if it is idle then; begins anew at the end of each fetch. */
  readonly idle: NodeJS.Timeout;
}

/** Origins of a tenant with open connections; a run has 50 fetches. */
const ORIGINS_MAX = 1_000;
/** A tenant without requests is forgotten after this; its idle connections are closed sooner. */
const IDLE_MS = 10_000;

/** Opens nothing by itself. `limits`: those that differ from SCRIPT_FETCH_LIMITS. */
export function createScriptFetch({
  egress,
  limits: given = {},
}: {
  readonly egress: Pick<Egress, 'dispatcher'>;
  readonly limits?: Partial<ScriptFetchLimits>;
}): ScriptFetch {
  const limits = { ...SCRIPT_FETCH_LIMITS, ...given };
  const tenants = new Map<string, Tenant>();
  const held: Held = { bytes: 0 };
  let isClosed = false;

  function tenantOf(tenant_id: string): Tenant {
    const known = tenants.get(tenant_id);
    if (known !== undefined) return known;
    const agent = egress.dispatcher({
      tenant_id,
      connectTimeoutMs: limits.headersMs,
      headersTimeoutMs: limits.headersMs,
      bodyTimeoutMs: limits.silenceMs,
      // No queue but the tenant's own.
      connectionsMax: limits.tenantRequestsMax,
      originsMax: ORIGINS_MAX,
      responseBytesMax: limits.responseBytesMax,
    });
    const fetches = new TenantFetches(agent, limits, held);
    const forget = (): void => {
      if (!fetches.isIdle) return;
      tenants.delete(tenant_id);
      // Nothing is under way; it fails only when it is closed already.
      agent.close().catch(() => undefined);
    };
    const tenant = { fetches, idle: setTimeout(forget, IDLE_MS).unref() };
    tenants.set(tenant_id, tenant);
    return tenant;
  }

  async function carryOut(tenant_id: string, text: string, call: FetchCall): Promise<string> {
    const request = readFetchRequest(text);
    const { fetches, idle } = tenantOf(tenant_id);
    const { controller } = call;
    const timer = setTimeout(() => controller.abort(fetchError('timeout')), limits.totalMs);
    try {
      return await fetches.run(controller.signal, text.length, (room) =>
        exchange(fetches.agent, request, limits, room, call),
      );
    } finally {
      clearTimeout(timer);
      idle.refresh();
    }
  }

  async function carryOutUntil(
    over: AbortSignal,
    tenant_id: string,
    text: string,
    beforeSend: BeforeSend,
  ): Promise<string> {
    if (isClosed) throw fetchError('closed');
    const controller = new AbortController();
    const giveUp = (): void => controller.abort(over.reason);
    if (over.aborted) giveUp();
    over.addEventListener('abort', giveUp, { once: true });
    try {
      return await carryOut(tenant_id, text, { controller, beforeSend });
    } catch (error) {
      throw readableFailure(error);
    } finally {
      over.removeEventListener('abort', giveUp);
    }
  }

  return {
    fetchFor:
      (tenant_id, beforeSend = async () => undefined) =>
      (text, signal) =>
        carryOutUntil(signal, tenant_id, text, beforeSend),
    close: async () => {
      isClosed = true;
      const known = [...tenants.values()];
      tenants.clear();
      for (const { idle } of known) clearTimeout(idle);
      // What waits for its turn fails at a closed agent, one after the other.
      await Promise.all(known.map(({ fetches }) => fetches.agent.destroy()));
    },
  };
}
