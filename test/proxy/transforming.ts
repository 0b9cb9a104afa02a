/**
 * Proxies with transforms in real sandbox hosts, for one file of tests: each call makes a proxy with the
 * code it is given, sends a request through it, and says what the destination got.
 */
import { expect } from 'chai';
import type { TestTenant } from '../support/control-plane.ts';
import { type Answer, type Call, call, type JsonObject } from '../support/http-call.ts';
import { type Origin, type ReceivedRequest, startOrigin } from './origin.ts';
import { type Proxies, type ProxyDraft, startProxies } from './proxies.ts';

export const FORM = 'application/x-www-form-urlencoded';
export const JSON_HEADERS = { 'content-type': 'application/json' };

export interface Draft extends Partial<ProxyDraft> {
  readonly application?: { id: string };
  readonly configuration?: Record<string, string>;
}

/** `path`: method and path. */
export type Sent = Call & { path?: string; tenant?: TestTenant };

export class Transforming {
  readonly proxies: Proxies;
  readonly origin: Origin;
  readonly #answer: (bytes: string) => void;

  private constructor(proxies: Proxies, origin: Origin, answer: (bytes: string) => void) {
    this.proxies = proxies;
    this.origin = origin;
    this.#answer = answer;
  }

  static async start(): Promise<Transforming> {
    const proxies = await startProxies({ SANDBOX_HOSTS: '1' });
    let answering = '';
    const origin = await startOrigin((socket) => socket.write(answering, 'latin1'));
    return new Transforming(proxies, origin, (bytes) => {
      answering = bytes;
    });
  }

  async stop(): Promise<void> {
    await this.origin.close();
    await this.proxies.stop();
  }

  /** Forgets what was received and answers `{}` again. */
  reset(): void {
    this.origin.received.splice(0);
    this.answer('{}');
  }

  /** What the destination answers from now on; the body in latin1. */
  answer(
    body: string,
    { status = '200 OK', headers = ['Content-Type: application/json'] } = {},
  ): void {
    const head = [`HTTP/1.1 ${status}`, ...headers, `Content-Length: ${body.length}`];
    this.#answer(`${head.join('\r\n')}\r\n\r\n${body}`);
  }

  /** Answers nothing from now on. */
  silence(): void {
    this.#answer('');
  }

  async send(draft: Draft, sent: Sent = {}): Promise<Answer<JsonObject>> {
    const { path = 'POST /proxy/pay?x=1', tenant, ...rest } = sent;
    const made: ProxyDraft = { destination_url: this.origin.url, ...draft };
    const { key } = await this.proxies.proxy(made, tenant);
    const headers = { ...rest.headers, 'BT-PROXY-KEY': key };
    return call<JsonObject>(this.proxies.url, path, { key: this.proxies.key, ...rest, headers });
  }

  /** With the body of a request transform. */
  onRequest(code: string, sent?: Sent, draft: Draft = {}): Promise<Answer<JsonObject>> {
    return this.send({ ...draft, request_transform: transform(code) }, sent);
  }

  /** With the body of a response transform. */
  onResponse(code: string, sent: Sent = {}, draft: Draft = {}): Promise<Answer<JsonObject>> {
    const text = { body: 'x', headers: { 'content-type': 'text/plain' } };
    return this.send({ ...draft, response_transform: transform(code) }, { ...text, ...sent });
  }

  /** The only request that reached the destination. */
  received(): ReceivedRequest {
    expect(this.origin.received).to.have.length(1);
    return this.origin.received[0] as ReceivedRequest;
  }

  /** The JSON it had for a body. */
  receivedJson(): JsonObject {
    return JSON.parse(Buffer.from(this.received().body, 'latin1').toString());
  }

  /** The values that reached the destination under a name. */
  header(name: string): string[] {
    const prefix = `${name}:`;
    const lines = this.received().headers.filter((line) => line.toLowerCase().startsWith(prefix));
    return lines.map((line) => line.slice(prefix.length).trim());
  }
}

/** The body of an async function of `req`. */
export const transform = (body: string) => ({
  code: `module.exports = async (req) => { ${body} };`,
});

/** The `proxy_error` of an answer that must be one. */
export function failure({ status, body, headers }: Answer<JsonObject>): JsonObject {
  expect(headers.get('bt-proxy-destination-status')).to.equal(null);
  const error = body.proxy_error as JsonObject;
  expect(error.status).to.equal(status);
  return error;
}
