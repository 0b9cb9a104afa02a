/** Proxies of the bench, and what is sent through them: orders of a fixed size with three cards. */
import { randomUUID } from 'node:crypto';
import { issueProxyKey, openProxyKey } from '../control-plane/proxies/proxy-key.ts';
import { insertProxy } from '../control-plane/proxies/proxy-store.ts';
import { createDataKeys } from '../shared/crypto/data-keys.ts';
import { inTransaction } from '../shared/postgres/pool.ts';
import { newCard } from './cards.ts';
import type { Workload } from './load/workload.ts';
import type { Vault } from './vault.ts';

/** Bodies that a workload draws from. */
const BODIES = 500;
const CARDS = 3;

/** Stores a proxy to the origin, all settings the default ones; returns its key. */
export async function createProxy(
  { pool, installation, tenantId, applicationId }: Vault,
  originPort: number,
  transform: string | undefined = undefined,
): Promise<string> {
  const id = randomUUID();
  const dataKeys = createDataKeys(pool, installation);
  const stored = transform === undefined ? null : { code: transform, code_version: randomUUID() };
  const sealed = await inTransaction(pool, async (client) => {
    const key_sealed = await issueProxyKey(client, { installation, dataKeys }, tenantId, id);
    await insertProxy(client, tenantId, id, {
      name: 'Bench',
      destination_url: `http://127.0.0.1:${originPort}`,
      require_auth: true,
      request_transform: stored,
      response_transform: stored,
      application_id: null,
      configuration_sealed: null,
      leak_tripwire: 'report',
      key_sealed,
      created_by: applicationId,
    });
    return key_sealed;
  });
  return openProxyKey(dataKeys, tenantId, id, sealed);
}

/** `POST /proxy/orders` of clear cards in `size` bytes; the origin must have seen them. */
export function clearOrders(vault: Vault, proxyKey: string, size: number): Workload {
  const numbers = () => Array.from({ length: CARDS }, () => newCard().data.number);
  return orders(vault, proxyKey, numbers, size);
}

/** The same with an expression, of another token each, in place of the cards' numbers. */
export function tokenOrders(
  vault: Vault,
  proxyKey: string,
  tokenIds: readonly string[],
  size: number,
): Workload {
  const expressions = () => {
    const first = Math.floor(Math.random() * (tokenIds.length - CARDS));
    const ids = tokenIds.slice(first, first + CARDS);
    return ids.map((id) => `{{ ${id} | json: '$.number' }}`);
  };
  return orders(vault, proxyKey, expressions, size);
}

function orders({ key }: Vault, proxyKey: string, numbers: () => string[], size: number): Workload {
  const head = [
    'POST /proxy/orders HTTP/1.1',
    'host: localhost',
    `bt-api-key: ${key}`,
    `bt-proxy-key: ${proxyKey}`,
    'content-type: application/json',
    `content-length: ${size}`,
  ];
  return {
    request: `${head.join('\r\n')}\r\n\r\n{}`,
    status: 200,
    contains: `"cards":${CARDS}`,
    values: Array.from({ length: BODIES }, () => orderOf(numbers(), size)),
  };
}

/** JSON of exactly `size` bytes: many short strings and numbers, as orders have them. */
function orderOf(numbers: readonly string[], size: number): string {
  const cards = numbers.map((number) => ({ number, expiration_month: 12, expiration_year: 2031 }));
  const items: object[] = [];
  const order = { currency: 'EUR', cards, items, note: '' };
  let length = JSON.stringify(order).length;
  for (let line = 1; ; line += 1) {
    const item = { sku: `sku-${line}`, name: 'An item of the order', quantity: 2, price: 19.99 };
    // And its comma, which the first has not.
    const more = JSON.stringify(item).length + (line === 1 ? 0 : 1);
    if (length + more > size) break;
    items.push(item);
    length += more;
  }
  return JSON.stringify({ ...order, note: 'x'.repeat(size - length) });
}
