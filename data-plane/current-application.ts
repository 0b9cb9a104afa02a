/** A known application as it is at the version that the gate read last. */
import type { ConfigReading } from '../shared/config-entries/config-version.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import type { CachedReactor } from './config-cache/reactor-cache.ts';
import type { Services } from './services.ts';

/** The same object when no change concerned it. Throws `unauthorized()` when its time or its key is over. */
export async function applicationAt(
  reading: ConfigReading,
  known: CachedApplication,
  { applications }: Pick<Services, 'applications'>,
  unauthorized: () => Error,
): Promise<CachedApplication> {
  const { config_version, now_ms } = reading;
  const current =
    known.config_version === config_version
      ? known
      : await applications.refresh(known, config_version);
  if (current === undefined || (current.expires_at_ms ?? Infinity) <= now_ms) throw unauthorized();
  return current;
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
