/** Makes a tenant with its own keys. There is no API for it: the first start and the CLI do. */
import { randomUUID } from 'node:crypto';
import { NAME_LENGTH_MAX } from '../../shared/api/fields.ts';
import type { Tenant } from '../../shared/api/tenants.ts';
import { createTenantKeys } from '../../shared/crypto/data-keys.ts';
import type { Installation } from '../../shared/crypto/installation.ts';
import { fieldError } from '../../shared/errors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { newConfigVersion } from '../config-changes/record-change.ts';
import { insertTenant } from './tenant-store.ts';

/** Writes the tenant and its keys in the caller's transaction. Throws 400 for a bad name. */
export async function createTenant(
  client: Queryable,
  installation: Installation,
  { name }: { name: string },
): Promise<Tenant> {
  const isName = name.length > 0 && name.length <= NAME_LENGTH_MAX && !/\p{Cc}/u.test(name);
  if (!isName) throw fieldError('name', `Must be one line of 1 to ${NAME_LENGTH_MAX} characters`);
  const tenant = { id: randomUUID(), name, config_version: newConfigVersion() };
  await createTenantKeys(client, installation, tenant.id);
  return insertTenant(client, tenant);
}
