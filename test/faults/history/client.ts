/**
 * One client of a history: sends requests as an application would, tries again with the same idempotency
 * key when nobody told it how a write ended, and enters into the ledger what it knows.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, type Call, call, type JsonObject } from '../../support/http-call.ts';
import type { Random } from '../../support/random.ts';
import { dataOf, type KnownToken, type Ledger } from './ledger.ts';
import type { HistoryTenant, World } from './world.ts';

/** A write is tried again for longer than any fault of the history lasts. */
const TRIES_MAX = 60;
const PAUSE_MS = 250;
/** Between two operations, at most: sixteen clients ask 300 times a second or so. */
const THINK_MS_MAX = 80;
/** Metadata has at most 50 members. */
const PATCHES_MAX = 40;
const NOBODY: Answer<JsonObject> = { status: 0, headers: new Headers(), text: '', body: {} };

export class Client {
  readonly #world: World;
  readonly #tenant: HistoryTenant;
  readonly #others: readonly HistoryTenant[];
  readonly #ledger: Ledger;
  readonly #random: Random;

  constructor(world: World, tenant: HistoryTenant, ledger: Ledger, random: Random) {
    this.#world = world;
    this.#tenant = tenant;
    this.#others = world.tenants.filter((one) => one !== tenant);
    this.#ledger = ledger;
    this.#random = random;
  }

  /** One operation after another until `isOver` says so. */
  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#step();
      await delay(this.#random.below(THINK_MS_MAX));
    }
  }

  #step(): Promise<void> {
    const choice = this.#random.below(100);
    if (choice < 22) return this.#create();
    if (choice < 29) return this.#createOnce();
    if (choice < 41) return this.#tokenizeInTransaction();
    if (choice < 47) return this.#react();
    if (choice < 51) return this.#reactLater();
    if (choice < 54) return this.#list();
    const token = this.#anyToken();
    if (token === undefined) return this.#create();
    if (choice < 67) return this.#patch(token);
    return choice < 72 ? this.#delete(token) : this.#read(token);
  }

  /** One attempt. What must never be answered is entered, whatever the request. */
  async #send(line: string, rest: Omit<Call, 'key'>): Promise<Answer<JsonObject>> {
    const { key } = this.#tenant;
    const answer = await call(this.#world.baseUrl, line, { ...rest, key }).catch(() => NOBODY);
    const { status, text, headers } = answer;
    this.#ledger.count(line, status);
    const of = `${line} → ${status} ${text.slice(0, 300)}`;
    if (this.#others.some(({ mark }) => text.includes(mark))) {
      this.#ledger.violate(`another tenant's data: ${of}`);
    }
    if (status === 503 && headers.get('retry-after') === null) {
      this.#ledger.violate(`503 without Retry-After: ${of}`);
    }
    const isReaction = line.endsWith('/react');
    if (status === 401 || (status === 500 && !isReaction)) this.#ledger.violate(`refused: ${of}`);
    return answer;
  }

  /** The same request with the same key until it is answered; then, sometimes, once more. */
  async #insist(line: string, rest: Omit<Call, 'key'>): Promise<Answer<JsonObject> | undefined> {
    const headers = { ...rest.headers, 'bt-idempotency-key': randomUUID() };
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const answer = await this.#send(line, { ...rest, headers });
      if (isSuccess(answer)) {
        if (this.#random.chance(0.2)) await this.#expectReplay(line, { ...rest, headers }, answer);
        return answer;
      }
      // Refused for good: without effect.
      if (![0, 409, 429, 500, 503].includes(answer.status)) return answer;
      await delay(PAUSE_MS);
    }
    return undefined;
  }

  async #expectReplay(
    line: string,
    rest: Omit<Call, 'key'>,
    first: Answer<JsonObject>,
  ): Promise<void> {
    const { status, text } = await this.#send(line, rest);
    if ([0, 409, 503].includes(status)) return;
    if (status !== first.status || text !== first.text) {
      this.#ledger.violate(`${line}: replayed as ${status} ${text}, was ${first.text}`);
    }
  }

  async #create(): Promise<void> {
    const op = this.#ledger.newOp('create');
    const json = { type: 'token', data: dataOf(this.#tenant, op) };
    const answer = await this.#insist('POST /tokens', { json });
    this.#settle(op, answer, ({ id }) => id);
  }

  /** Without a key: tried once. */
  async #createOnce(): Promise<void> {
    const op = this.#ledger.newOp('once');
    const json = { type: 'token', data: dataOf(this.#tenant, op) };
    const answer = await this.#send('POST /tokens', { json });
    this.#settle(op, answer, ({ id }) => id);
  }

  async #react(): Promise<void> {
    const op = this.#ledger.newOp('react');
    const json = { args: { op: dataOf(this.#tenant, op) } };
    const answer = await this.#insist(`POST /reactors/${this.#tenant.reactorId}/react`, { json });
    this.#settle(op, answer, ({ tokens }) => (tokens as JsonObject).id);
  }

  /** What comes of it is asked for at the end (check-history.ts). */
  async #reactLater(): Promise<void> {
    const op = this.#ledger.newOp('later');
    const { reactorId } = this.#tenant;
    const json = { args: { op: dataOf(this.#tenant, op) } };
    const answer = await this.#insist(`POST /reactors/${reactorId}/react-async`, { json });
    if (answer === undefined || !isSuccess(answer)) this.#ledger.unknown.add(op);
    else this.#ledger.accept(this.#tenant, op, String(answer.body.asyncReactorRequestId));
  }

  async #tokenizeInTransaction(): Promise<void> {
    const op = this.#ledger.newOp('transaction');
    const begun = await this.#insist('POST /transactions', {});
    if (begun === undefined || !isSuccess(begun)) return;
    const id = String(begun.body.id);
    const headers = { 'bt-transaction-id': id };
    const json = [dataOf(this.#tenant, op), dataOf(this.#tenant, op)];
    const made = await this.#insist('POST /tokenize', { json, headers });
    const isWanted = this.#random.chance(0.7);
    const ended = await this.#insist(
      `POST /transactions/${id}/${isWanted ? 'commit' : 'rollback'}`,
      {},
    );
    if (made === undefined || !isSuccess(made) || ended === undefined) this.#ledger.unknown.add(op);
    else if (!isSuccess(ended)) this.#ledger.violate(`${op}: ${ended.status} ${ended.text}`);
    else if (isWanted) this.#ledger.acknowledge(this.#tenant, op, made.body as unknown as string[]);
    else this.#ledger.undone.add(op);
  }

  /** `idOf`: of the one token that it made. */
  #settle(
    op: string,
    answer: Answer<JsonObject> | undefined,
    idOf: (body: JsonObject) => unknown,
  ): void {
    if (answer === undefined || !isSuccess(answer)) this.#ledger.unknown.add(op);
    else this.#ledger.acknowledge(this.#tenant, op, [String(idOf(answer.body))]);
  }

  async #patch(token: KnownToken): Promise<void> {
    if (token.patches >= PATCHES_MAX || token.deletesSent > 0) return;
    token.patches += 1;
    const name = `patch-${token.patches}`;
    const headers = { 'content-type': 'application/merge-patch+json' };
    const rest = { headers, json: { metadata: { [name]: 'yes' } } };
    const answer = await this.#insist(`PATCH /tokens/${token.id}`, rest);
    if (answer?.status === 200) token.patched.add(name);
    else if (answer?.status === 404 && token.deletesSent === 0) this.#lost(token, 'PATCH');
  }

  /** A 404 is right when another client's delete came first: which one, is seen at the end. */
  async #delete(token: KnownToken): Promise<void> {
    token.deletesSent += 1;
    const { status } = await this.#send(`DELETE /tokens/${token.id}`, {});
    if (status === 204) token.deletes += 1;
    else if (status !== 404) token.deletesUntold += 1;
    if (status === 204 || status === 404) token.deletedAt ??= performance.now();
  }

  /** A page of the newest; each token on it counts as read. */
  async #list(): Promise<void> {
    const beganAt = performance.now();
    const { status, body } = await this.#send('GET /tokens?size=10', {});
    if (status !== 200) return;
    for (const { id, data } of body.data as JsonObject[]) {
      if (!String(data).startsWith(`${this.#tenant.mark} `)) {
        this.#ledger.violate(`${id}: listed with data of nobody`);
      }
      const token = this.#ledger.tokens.get(String(id));
      if (token !== undefined) this.#seen(token, data, beganAt);
    }
  }

  async #read(token: KnownToken): Promise<void> {
    const beganAt = performance.now();
    const { status, body } = await this.#send(`GET /tokens/${token.id}`, {});
    if (status === 404 && token.deletesSent === 0) this.#lost(token, 'GET');
    if (status === 200) this.#seen(token, body.data, beganAt);
  }

  #seen(token: KnownToken, data: unknown, beganAt: number): void {
    const { op, tenant, deletedAt } = token;
    token.reads += 1;
    if (data !== dataOf(tenant, op)) this.#ledger.violate(`${op}: read as ${data}`);
    if (deletedAt !== undefined && deletedAt < beganAt) {
      this.#ledger.violate(`${op}: read after its delete was acknowledged`);
    }
  }

  #lost(token: KnownToken, line: string): void {
    this.#ledger.violate(`${line}: ${token.op} ${token.id} is not there`);
    this.#ledger.lost.add(token.id);
  }

  /** Mostly one of the newest, so that clients meet. */
  #anyToken(): KnownToken | undefined {
    const all = this.#ledger.of(this.#tenant);
    if (this.#random.chance(0.8)) return all.at(-1 - this.#random.below(Math.min(30, all.length)));
    return all[this.#random.below(all.length)];
  }
}

const isSuccess = ({ status }: { readonly status: number }): boolean =>
  status >= 200 && status < 300;
