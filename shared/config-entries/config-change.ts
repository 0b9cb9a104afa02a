/**
 * What a change of configuration says to data planes. It is a hint to warm caches early: nothing is
 * decided on it, so losing one changes nothing but speed (design section 5).
 */

/** Kinds of configuration that data planes cache. The id of `tenant` is the tenant's own. */
export interface ChangedEntity {
  kind: 'application' | 'tenant' | 'reactor' | 'reactor_formula' | 'proxy';
  id: string;
}

export interface ConfigChange {
  tenant_id: string;
  /** The tenant's configuration version after the change. */
  version: string;
  entities: ChangedEntity[];
}

/** Postgres channel and Redis channel of notices. */
export const NOTICE_CHANNEL = 'sallyport_config';

/** Reads a notice; `undefined` when it is not one. */
export function parseNotice(text: string): ConfigChange | undefined {
  try {
    const change: unknown = JSON.parse(text);
    return isConfigChange(change) ? change : undefined;
  } catch {
    return undefined;
  }
}

function isConfigChange(value: unknown): value is ConfigChange {
  if (typeof value !== 'object' || value === null) return false;
  const { tenant_id, version, entities } = value as Record<string, unknown>;
  return typeof tenant_id === 'string' && typeof version === 'string' && Array.isArray(entities);
}
