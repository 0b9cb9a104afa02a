/** Cards of the bench: made up, of one length, valid by checksum. And what is asked about them. */
import { randomInt } from 'node:crypto';
import { FRESH, type Workload } from './load/workload.ts';
import type { Vault } from './vault.ts';

export interface CardRequest {
  type: 'card';
  data: { number: string; expiration_month: number; expiration_year: number };
}

/** Bodies that a create workload draws from. */
const BODIES = 2_000;

/** A card as an application would send it. All have the same length as JSON. */
export function newCard(): CardRequest {
  const digits = `4${String(randomInt(10 ** 14)).padStart(14, '0')}`;
  const number = digits + checkDigit(digits);
  return { type: 'card', data: { number, expiration_month: 12, expiration_year: 2031 } };
}

/** The Luhn digit behind `digits` (ISO/IEC 7812-1 annex B). */
function checkDigit(digits: string): number {
  let sum = 0;
  [...digits].reverse().forEach((digit, index) => {
    const weighted = Number(digit) * (index % 2 === 0 ? 2 : 1);
    sum += weighted > 9 ? weighted - 9 : weighted;
  });
  return (10 - (sum % 10)) % 10;
}

const headOf = (line: string, key: string, more = ''): string =>
  `${line} HTTP/1.1\r\nhost: localhost\r\nbt-api-key: ${key}\r\n${more}\r\n`;

/** `GET /tokens/{id}` of one of these; the answer must show the number in clear. */
export function readCards({ key, tenantId }: Vault, ids: readonly string[]): Workload {
  return {
    request: headOf('GET /tokens/{}', key),
    status: 200,
    contains: `{"id":"{}","tenant_id":"${tenantId}","type":"card","data":{"number":"4`,
    values: ids,
  };
}

/** `POST /tokens`; the answer must be masked. */
export function createCards(vault: Vault): Workload {
  return createCardsWith(vault, '');
}

/** The same with an idempotency key that is new each time. */
export function createKeyedCards(vault: Vault): Workload {
  return createCardsWith(vault, `bt-idempotency-key: ${FRESH}\r\n`);
}

function createCardsWith({ key, tenantId }: Vault, more: string): Workload {
  const bodies = Array.from({ length: BODIES }, () => JSON.stringify(newCard()));
  const length = bodies[0]?.length ?? 0;
  const headers = `content-type: application/json\r\ncontent-length: ${length}\r\n${more}`;
  return {
    request: `${headOf('POST /tokens', key, headers)}{}`,
    status: 201,
    contains: `"tenant_id":"${tenantId}","type":"card","data":{"number":"XXXX`,
    values: bodies,
  };
}

/** `GET /tokens?size=20`; the answer must have the right total. */
export function listCards({ key }: Vault, total: number): Workload {
  return {
    request: headOf('GET /tokens?size=20', key),
    status: 200,
    contains: `{"pagination":{"total_items":${total},"page_number":1,"page_size":20,`,
    values: [''],
  };
}
