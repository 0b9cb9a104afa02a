/** What a proxy becomes under POST and PUT, which set everything, and PATCH, which merges (RFC 7396). */
import { randomUUID } from 'node:crypto';
import type { LeakTripwire, PatchProxyRequest, ProxyRequest } from '../../shared/api/proxies.ts';
import type { DataKeys } from '../../shared/crypto/data-keys.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { sealConfiguration } from '../../shared/reactors/sealed-configuration.ts';
import {
  namedApplication,
  patchApplicationId,
  readApplicationId,
} from '../applications/acting-application.ts';
import { mergeConfiguration } from '../scripts/merge-configuration.ts';
import type { ProxyRow, ProxyValues, StoredTransform } from './proxy-store.ts';

const REQUIRE_AUTH_DEFAULT = true;
const LEAK_TRIPWIRE_DEFAULT: LeakTripwire = 'report';

/** A new proxy has nothing but ids; one that is replaced is locked. */
type Known = Pick<ProxyRow, 'id' | 'tenant_id'> & Partial<ProxyRow>;

const ownerOf = ({ tenant_id, id }: Known) => ({ kind: 'proxy', tenant_id, id }) as const;

/** POST and PUT: what is absent or null has its default. */
export async function replaceProxy(
  client: Queryable,
  dataKeys: DataKeys,
  current: Known,
  body: ProxyRequest,
): Promise<ProxyValues> {
  const { request_transform, response_transform } = body;
  return {
    name: body.name,
    destination_url: body.destination_url,
    require_auth: body.require_auth ?? REQUIRE_AUTH_DEFAULT,
    request_transform: transformOf(request_transform?.code ?? null, current.request_transform),
    response_transform: transformOf(response_transform?.code ?? null, current.response_transform),
    application_id: await readApplicationId(client, current.tenant_id, namedApplication(body)),
    configuration_sealed: await sealConfiguration(
      dataKeys,
      ownerOf(current),
      body.configuration ?? {},
    ),
    leak_tripwire: body.leak_tripwire ?? LEAK_TRIPWIRE_DEFAULT,
  };
}

/** PATCH: what is absent stays as it is; null removes, or brings the default back. */
export async function patchProxy(
  client: Queryable,
  dataKeys: DataKeys,
  current: ProxyRow,
  patch: PatchProxyRequest,
): Promise<ProxyValues> {
  const { request_transform, response_transform } = patch;
  return {
    name: patch.name ?? current.name,
    destination_url: patch.destination_url ?? current.destination_url,
    require_auth: patched(current.require_auth, patch.require_auth, REQUIRE_AUTH_DEFAULT),
    request_transform: patchTransform(current.request_transform, request_transform),
    response_transform: patchTransform(current.response_transform, response_transform),
    application_id: await patchApplicationId(client, current, namedApplication(patch)),
    configuration_sealed: await patchConfiguration(dataKeys, current, patch.configuration),
    leak_tripwire: patched(current.leak_tripwire, patch.leak_tripwire, LEAK_TRIPWIRE_DEFAULT),
  };
}

function patched<T>(current: T, change: T | null | undefined, fallback: T): T {
  if (change === undefined) return current;
  return change ?? fallback;
}

function patchTransform(
  current: StoredTransform | null,
  patch: PatchProxyRequest['request_transform'],
): StoredTransform | null {
  if (patch === undefined || (patch !== null && patch.code === undefined)) return current;
  return transformOf(patch?.code ?? null, current);
}

async function patchConfiguration(
  dataKeys: DataKeys,
  current: ProxyRow,
  patch: PatchProxyRequest['configuration'],
): Promise<Buffer | null> {
  const { configuration_sealed: sealed } = current;
  if (patch === undefined) return sealed;
  const owner = ownerOf(current);
  const merged = await mergeConfiguration(dataKeys, owner, sealed, patch);
  return sealConfiguration(dataKeys, owner, merged);
}

/** The same code keeps its version: what sandboxes have of it stays warm. */
function transformOf(
  code: string | null,
  current: StoredTransform | null | undefined,
): StoredTransform | null {
  if (code === null) return null;
  return current?.code === code ? current : { code, code_version: randomUUID() };
}
