/** Connections to destinations, never shared between tenants (design section 9). */
import { LRUCache } from 'lru-cache';
import type { Agent } from 'undici';
import type { Egress } from '../../shared/egress/create-egress.ts';
import type { GuardedAgents } from '../../shared/egress/guarded-agents.ts';
import { Places } from './places.ts';

export interface DestinationPools {
  dispatcher(tenantId: string): Agent;
  /** To be taken before either engine is used. */
  places(tenantId: string): Places;
  /** For requests with headers of the connection, which the dispatcher refuses. */
  agents(tenantId: string): GuardedAgents;
  /** Ends what is under way and closes all connections. */
  close(): Promise<void>;
}

/** A tenant's pools without connections take some KiB; its idle connections close by themselves. */
const TENANTS_MAX = 10_000;

/** Opens nothing by itself. */
export function createPools(egress: Pick<Egress, 'dispatcher' | 'agents'>): DestinationPools {
  const dispatchers = new LRUCache<string, Agent>({
    max: TENANTS_MAX,
    // What is under way ends by itself.
    dispose: (agent) => void agent.close(),
  });
  const agents = new LRUCache<string, GuardedAgents>({ max: TENANTS_MAX });
  const places = new LRUCache<string, Places>({ max: TENANTS_MAX });
  return {
    places(tenantId) {
      let own = places.get(tenantId);
      if (own === undefined) {
        own = new Places();
        places.set(tenantId, own);
      }
      return own;
    },
    dispatcher(tenantId) {
      let agent = dispatchers.get(tenantId);
      if (agent === undefined) {
        agent = egress.dispatcher({ tenant_id: tenantId });
        dispatchers.set(tenantId, agent);
      }
      return agent;
    },
    agents(tenantId) {
      let pair = agents.get(tenantId);
      if (pair === undefined) {
        pair = egress.agents({ tenant_id: tenantId });
        agents.set(tenantId, pair);
      }
      return pair;
    },
    async close() {
      const all = [...dispatchers.values()];
      for (const pair of agents.values()) pair.destroy();
      await Promise.all(all.map((agent) => agent.destroy()));
    },
  };
}
