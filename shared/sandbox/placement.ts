/** Rendezvous hashing: which host a tenant belongs to. A host that comes or goes moves only its own. */

/** The slot of `slots` with the highest weight for this tenant; `undefined` when there is none. */
export function placeTenant(tenant_id: string, slots: readonly number[]): number | undefined {
  let best: number | undefined;
  let bestWeight = -1;
  for (const slot of slots) {
    const weight = weightOf(slot, tenant_id);
    if (weight > bestWeight) {
      best = slot;
      bestWeight = weight;
    }
  }
  return best;
}

/**
 * 32 bits that look random: FNV-1a, then what MurmurHash3 ends with. Ids of tenants are made by us, so
 * nobody can aim at a host; SHA-256, for every host and run, cost a short run 4 %.
 */
function weightOf(slot: number, tenant_id: string): number {
  let hash = 0x811c9dc5 ^ slot;
  for (let index = 0; index < tenant_id.length; index += 1) {
    hash = Math.imul(hash ^ tenant_id.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
