/** The token operations over HTTP as one key's calls, and how a refusal must look. */
import { expect } from 'chai';
import { type Answer, type Call, call, type JsonObject } from '../../support/http-call.ts';

/** A token as it is answered; `data` stays JSON of any kind. */
export interface TokenBody {
  id: string;
  tenant_id: string;
  type: string;
  data?: unknown;
  mask?: unknown;
  containers: string[];
  metadata?: Record<string, string>;
  search_indexes: string[];
  fingerprint?: string;
  fingerprint_expression?: string;
  expires_at?: string;
  created_by: string;
  created_at: string;
  modified_by?: string;
  modified_at?: string;
  _extras?: { deduplicated: boolean };
}

export interface TokenPage {
  pagination: Record<'total_items' | 'page_number' | 'page_size' | 'total_pages', number>;
  data: TokenBody[];
}

export interface TokenClient {
  /** Any request with this key. */
  send<T = TokenBody>(line: string, rest?: Call): Promise<Answer<T>>;
  /** `text` is sent as the JSON body, byte for byte. */
  createText(text: string): Promise<Answer<TokenBody>>;
  create(json: unknown): Promise<Answer<TokenBody>>;
  /** Creates and returns the token; fails unless it was created. */
  created(json: JsonObject): Promise<TokenBody>;
  read(id: string): Promise<Answer<TokenBody>>;
  patch(id: string, patch: unknown): Promise<Answer<TokenBody>>;
  patchText(id: string, text: string): Promise<Answer<TokenBody>>;
  remove(id: string): Promise<Answer<undefined>>;
  list(query?: string): Promise<Answer<TokenPage>>;
  tokenize<T = JsonObject>(json: unknown): Promise<Answer<T>>;
  /** Tokenizes and returns what became of `json`; fails unless it was done. */
  tokenized<T>(json: unknown): Promise<T>;
}

export function tokenClient(url: string, key: string): TokenClient {
  const send = <T = TokenBody>(line: string, rest: Call = {}) =>
    call<T>(url, line, { key, ...rest });
  const path = (id: string) => `/tokens/${encodeURIComponent(id)}`;
  const patchText = (id: string, body: string) =>
    send(`PATCH ${path(id)}`, {
      body,
      headers: { 'content-type': 'application/merge-patch+json' },
    });
  const create = (json: unknown) => send('POST /tokens', { json });
  const tokenize = <T = JsonObject>(json: unknown) => send<T>('POST /tokenize', { json });
  return {
    send,
    createText: (body) =>
      send('POST /tokens', { body, headers: { 'content-type': 'application/json' } }),
    create,
    async created(json) {
      const answer = await create(json);
      expect(answer.status, answer.text.slice(0, 500)).to.equal(201);
      return answer.body;
    },
    read: (id) => send(`GET ${path(id)}`),
    patch: (id, patch) => patchText(id, JSON.stringify(patch)),
    patchText,
    remove: (id) => send<undefined>(`DELETE ${path(id)}`),
    list: (query = '') => send<TokenPage>(`GET /tokens${query}`),
    tokenize,
    async tokenized<T>(json: unknown) {
      const answer = await tokenize<T>(json);
      expect(answer.status, answer.text.slice(0, 500)).to.equal(200);
      return answer.body;
    },
  };
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/**
 * A refusal in the documented form: `status`, problem details, exactly these members at fault, and
 * no digits that could be a number somebody sent.
 */
export function expectProblem(
  answer: Pick<Answer<unknown>, 'status' | 'headers' | 'text'>,
  status: number,
  ...paths: string[]
): void {
  expect(answer.status, answer.text.slice(0, 500)).to.equal(status);
  expect(answer.headers.get('content-type')).to.equal('application/problem+json');
  const { errors, ...problem } = JSON.parse(answer.text) as JsonObject;
  expect(problem).to.have.all.keys('title', 'status', 'detail');
  expect(problem.status).to.equal(status);
  if (paths.length > 0) expect(errors).to.have.all.keys(...paths);
  // Ids of tokens are named; nine digits stand in one of some seventy.
  expect(answer.text.replaceAll(UUID, '')).not.to.match(/[0-9]{9}/);
}
