/** Rendezvous hashing: which host a tenant belongs to. A host that comes or goes moves only its own. */
import { createHash } from 'node:crypto';

/** The slot of `slots` with the highest weight for this tenant; `undefined` when there is none. */
export function placeTenant(tenant_id: string, slots: readonly number[]): number | undefined {
  let best: number | undefined;
  let bestWeight = -1;
  for (const slot of slots) {
    const weight = createHash('sha256').update(`${slot}/${tenant_id}`).digest().readUInt32BE(0);
    if (weight > bestWeight) {
      best = slot;
      bestWeight = weight;
    }
  }
  return best;
}
