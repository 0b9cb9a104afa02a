/** Proxies as they are answered: with their key and their configuration in clear. */
import type { ProxyAnswer } from '../../shared/api/proxies.ts';
import type { DataKeys } from '../../shared/crypto/data-keys.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { openConfiguration } from '../../shared/reactors/sealed-configuration.ts';
import { findActingApplications } from '../applications/acting-application.ts';
import { omitNulls, type RowOf } from '../omit-nulls.ts';
import { openProxyKey } from './proxy-key.ts';
import type { ProxyRow, StoredTransform } from './proxy-store.ts';

/** The answers to rows of one tenant, in their order; `application_id` is left out when it is gone. */
export async function answerProxies(
  db: Queryable,
  dataKeys: DataKeys,
  tenantId: string,
  rows: readonly ProxyRow[],
): Promise<ProxyAnswer[]> {
  const applications = await findActingApplications(db, tenantId, rows);
  const answers: ProxyAnswer[] = [];
  for (const { key_sealed, configuration_sealed, ...row } of rows) {
    const owner = { kind: 'proxy', tenant_id: tenantId, id: row.id } as const;
    const members: RowOf<ProxyAnswer> = {
      ...row,
      key: await openProxyKey(dataKeys, tenantId, row.id, key_sealed),
      request_transform: shown(row.request_transform),
      response_transform: shown(row.response_transform),
      application_id: applications.get(row.application_id ?? '')?.id ?? null,
      configuration: await openConfiguration(dataKeys, owner, configuration_sealed),
    };
    answers.push(omitNulls<ProxyAnswer>(members));
  }
  return answers;
}

/** The version is nobody's business. */
function shown(transform: StoredTransform | null): { code: string } | null {
  return transform && { code: transform.code };
}
