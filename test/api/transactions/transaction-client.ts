/** Calls of one key inside a transaction: the token operations with BT-TRANSACTION-ID. */
import { expect } from 'chai';
import { type Answer, type Call, call, type JsonObject } from '../../support/http-call.ts';
import type { TokenBody } from '../tokens/token-client.ts';

export interface TransactionBody {
  id: string;
  created_at: string;
  created_by: string;
  expires_at: string;
}

export interface TransactionClient {
  readonly id: string;
  /** Any request with this key and transaction. */
  send<T = TokenBody>(line: string, rest?: Call): Promise<Answer<T>>;
  create(json: unknown): Promise<Answer<TokenBody>>;
  /** Creates and returns the token; fails unless it was created. */
  created(json: JsonObject): Promise<TokenBody>;
  patch(id: string, patch: unknown): Promise<Answer<TokenBody>>;
  remove(id: string): Promise<Answer<undefined>>;
  commit(): Promise<Answer<undefined>>;
  rollback(): Promise<Answer<undefined>>;
}

const BODYLESS = { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: '' };

/** As the clients of the time open one: an empty body of a form, a trailing slash. */
export function openTransaction(url: string, key: string): Promise<Answer<TransactionBody>> {
  return call<TransactionBody>(url, 'POST /transactions/', { key, ...BODYLESS });
}

export function transactionClient(url: string, key: string, id: string): TransactionClient {
  const send = <T = TokenBody>(line: string, { headers = {}, ...rest }: Call = {}) =>
    call<T>(url, line, { key, ...rest, headers: { 'BT-TRANSACTION-ID': id, ...headers } });
  const create = (json: unknown) => send('POST /tokens/', { json });
  const end = (how: string) =>
    call<undefined>(url, `POST /transactions/${id}/${how}`, { key, ...BODYLESS });
  return {
    id,
    send,
    create,
    async created(json) {
      const answer = await create(json);
      expect(answer.status, answer.text.slice(0, 500)).to.equal(201);
      return answer.body;
    },
    patch: (tokenId, patch) =>
      send(`PATCH /tokens/${encodeURIComponent(tokenId)}`, {
        body: JSON.stringify(patch),
        headers: { 'content-type': 'application/merge-patch+json' },
      }),
    remove: (tokenId) => send<undefined>(`DELETE /tokens/${encodeURIComponent(tokenId)}`),
    commit: () => end('commit'),
    rollback: () => end('rollback'),
  };
}

/** A transaction that was just opened. */
export async function begin(url: string, key: string): Promise<TransactionClient> {
  const { status, text, body } = await openTransaction(url, key);
  expect(status, text).to.equal(201);
  return transactionClient(url, key, body.id);
}
