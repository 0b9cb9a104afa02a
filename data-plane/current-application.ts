/** A known application as it is at the version that the gate read last. */
import type { ConfigReading } from '../shared/config-entries/config-version.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import type { CachedReactor } from './config-cache/reactor-cache.ts';
import type { Services } from './services.ts';

/**
 * The same object when no change concerned it; a promise only when there was one. Throws `unauthorized()` when
 * its time or its key is over.
 */
export function applicationAt(
  { config_version, now_ms }: ConfigReading,
  known: CachedApplication,
  { applications }: Pick<Services, 'applications'>,
  unauthorized: () => Error,
): CachedApplication | Promise<CachedApplication> {
  const inTime = (current: CachedApplication | undefined): CachedApplication => {
    const isOver = current === undefined || (current.expires_at_ms ?? Infinity) <= now_ms;
    if (isOver) throw unauthorized();
    return current;
  };
  if (known.config_version === config_version) return inTime(known);
  return applications.refresh(known, config_version).then(inTime);
}

/** The application that a script runs with, at a version its caller was confirmed at; if there is one. */
export async function applicationOf(
  { tenant_id, application_id }: Pick<CachedReactor, 'tenant_id' | 'application_id'>,
  config_version: string,
  { applications }: Pick<Services, 'applications'>,
): Promise<CachedApplication | undefined> {
  if (application_id === null) return undefined;
  const known = await applications.byId(tenant_id, application_id);
  if (known === undefined || known.config_version === config_version) return known;
  return applications.refresh(known, config_version);
}
