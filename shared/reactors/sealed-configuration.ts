/**
 * The configuration of a reactor or proxy as it is stored: names and values that its code gets besides
 * its arguments. Often keys of other services, so it is sealed, bound to its tenant and owner.
 */
import type { DataKeys } from '../crypto/data-keys.ts';
import { seal, sealLabel } from '../crypto/envelope.ts';

/** As configured: texts, or null for a name that is there without a value. */
export type ConfigurationValues = Record<string, string | null>;

export interface ConfigurationOwner {
  readonly kind: 'reactor' | 'proxy';
  readonly tenant_id: string;
  readonly id: string;
}

const label = ({ kind, tenant_id, id }: ConfigurationOwner): Buffer =>
  sealLabel(`${kind}-configuration`, tenant_id, id);

/**
 * What the column `configuration_sealed` holds; null for an empty configuration. Throws when the
 * tenant's keys are gone.
 */
export async function sealConfiguration(
  dataKeys: DataKeys,
  owner: ConfigurationOwner,
  values: ConfigurationValues,
): Promise<Buffer | null> {
  if (Object.keys(values).length === 0) return null;
  const { current } = await dataKeys.forTenant(owner.tenant_id);
  return seal(current, Buffer.from(JSON.stringify(values)), label(owner));
}

/** The values as they were sealed; none for null. */
export async function openConfiguration(
  dataKeys: DataKeys,
  owner: ConfigurationOwner,
  sealed: Buffer | null,
): Promise<ConfigurationValues> {
  if (sealed === null) return {};
  const opened = await dataKeys.open(owner.tenant_id, sealed, label(owner));
  return JSON.parse(opened.toString('utf8')) as ConfigurationValues;
}
