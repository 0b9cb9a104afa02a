/**
 * What is sent to the destination, decided for one caller: headers and body with the values put in. It
 * may be decided more than once, while the configuration changes; the body is read once.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from '../exchange.ts';
import type { ProxyingServices } from '../services.ts';
import type { AcceptedRequest } from '../strict-request.ts';
import type { ProxyCaller } from './caller.ts';
import { DECODABLE, forwardedHeaders, headerOf, sentHeaders } from './headers.ts';
import { type IncomingBytes, readIncomingBytes } from './incoming-bytes.ts';
import { mustReadBody, type PreparedRequest, prepareRequest } from './outgoing-body.ts';
import type { ProxyRequest } from './read-request.ts';
import { RequestBody } from './request-body.ts';
import type { ProxyContext } from './transform-context.ts';

interface Call {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly head: AcceptedRequest;
}

/** `secrets`: what was brought out of the vault for this request. */
export type Prepared =
  | {
      readonly headers: string[];
      readonly body: Buffer | RequestBody | undefined;
      readonly secrets: readonly string[];
    }
  | { readonly custom: Answer };

export class RequestPreparation {
  readonly #call: Call;
  readonly #request: ProxyRequest;
  readonly #services: ProxyingServices;
  #bytes: Promise<IncomingBytes> | undefined;

  constructor(call: Call, request: ProxyRequest, services: ProxyingServices) {
    this.#call = call;
    this.#request = request;
    this.#services = services;
  }

  /** Throws what the caller may not do, and whatever is wrong with the body. Confirms the caller. */
  async decide(caller: ProxyCaller): Promise<Prepared> {
    caller.requireRight();
    const { head } = this.#call;
    const hasBody = head.chunked || (head.contentLength ?? 0) > 0;
    const { proxy } = caller;
    if (mustReadBody(head.contentType, proxy) && (hasBody || proxy.request_transform !== null)) {
      return this.#decideOnBody(caller);
    }
    caller.confirm(await this.#services.gate.read(proxy.tenant_id));
    return { headers: this.#sent(caller), body: hasBody ? this.#stream() : undefined, secrets: [] };
  }

  /** A body that is looked into, or given to a transform. */
  async #decideOnBody(caller: ProxyCaller): Promise<Prepared> {
    const { req, res, head } = this.#call;
    this.#bytes ??= readIncomingBytes(req, res, head);
    const bytes = await this.#bytes;
    const isCoded = bytes.decoded !== bytes.wire;
    const forwarded = forwardedHeaders(req.rawHeaders);
    const { path, query } = this.#request.suffix;
    const prepared = await prepareRequest(
      {
        ...{ body: bytes.decoded, contentType: head.contentType, method: head.method, path, query },
        headers: isCoded ? withoutCoding(forwarded) : forwarded,
      },
      contextOf(caller, head.traceId),
      this.#services,
    );
    if ('custom' in prepared) return prepared;
    // Nothing was put in or changed: the bytes that came are the bytes that go.
    const isUntouched = isCoded && prepared.body === bytes.decoded;
    return this.#prepared(caller, prepared, isUntouched ? bytes.wire : undefined, forwarded);
  }

  #prepared(
    caller: ProxyCaller,
    { body, headers, secrets }: PreparedRequest,
    untouched: Buffer | undefined,
    forwarded: readonly string[],
  ): Prepared {
    const coding = untouched && headerOf(forwarded, 'content-encoding');
    const all = coding === undefined ? headers : [...headers, 'Content-Encoding', coding];
    return { headers: this.#sent(caller, all, secrets), body: untouched ?? body, secrets };
  }

  #sent(
    { proxy }: ProxyCaller,
    headers?: readonly string[],
    secrets: readonly string[] = [],
  ): string[] {
    const { req, head } = this.#call;
    const decodes = proxy.response_transform !== null && head.method !== 'HEAD';
    // What is compressed cannot be masked.
    const masks = proxy.leak_tripwire === 'redact' && secrets.length > 0;
    const accept = masks ? 'identity' : decodes ? DECODABLE : undefined;
    return sentHeaders(headers ?? forwardedHeaders(req.rawHeaders), {
      ...{ traceId: head.traceId, accept },
    });
  }

  #stream(): RequestBody {
    const { req, res, head } = this.#call;
    if (head.expectsContinue) res.writeContinue();
    return new RequestBody(req, head.contentLength);
  }
}

/** What bodies and transforms need to know of a caller. */
export function contextOf(caller: ProxyCaller, traceId: string): ProxyContext {
  const { proxy } = caller;
  return { proxy, right: caller, confirm: (reading) => caller.confirm(reading), traceId };
}

function withoutCoding(headers: readonly string[]): string[] {
  return headers.filter(
    (_, index) => headers[index - (index % 2)]?.toLowerCase() !== 'content-encoding',
  );
}
