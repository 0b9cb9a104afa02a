/**
 * What is sent to the destination, decided for one caller: headers and body with the values put in. It
 * may be decided more than once, while the configuration changes; the body is read once.
 */

import { readCoding } from '../../shared/http/decompress.ts';
import type { AcceptedRequest } from '../../shared/http/strict-request.ts';
import type { Answer, CallingRun } from '../exchange.ts';
import type { ProxyingServices } from '../services.ts';
import { BroughtOut } from './brought-out.ts';
import type { ProxyCaller } from './caller.ts';
import { targetAt } from './destination.ts';
import { DECODABLE, firstHeader, forwardedHeaders, sentHeaders, withoutHeader } from './headers.ts';
import type { IncomingBytes } from './incoming-bytes.ts';
import { mustReadBody, prepareRequest } from './outgoing-body.ts';
import type { ProxyRequest } from './read-request.ts';
import type { RequestBody } from './request-body.ts';
import type { ProxyContext } from './transform-context.ts';

/** A request to a proxy, wherever it comes from. */
export interface IncomingRequest {
  readonly head: AcceptedRequest;
  readonly rawHeaders: readonly string[];
  /** The run of a script that sends it, if it is one. */
  readonly callingRun?: CallingRun | undefined;
  /** All of its body; called at most once. A promise unless it is here. Throws 413 over 5 MiB. */
  readBytes(): IncomingBytes | Promise<IncomingBytes>;
  /** Its body as it goes on when nobody looks into it. */
  passBody(): RequestBody | Buffer;
}

export type Prepared =
  | {
      /** Path and query at the destination. */
      readonly target: string;
      readonly headers: string[];
      readonly body: Buffer | RequestBody | undefined;
      /** Of the body, when it is none of those that came. */
      readonly madeBytes: number;
      /** What was brought out of the vault for this request. */
      readonly broughtOut: BroughtOut;
      /** Of the tokens that were put in. */
      readonly tokenIds: readonly string[];
    }
  | { readonly custom: Answer };

export class RequestPreparation {
  readonly #incoming: IncomingRequest;
  readonly #request: ProxyRequest;
  readonly #services: ProxyingServices;
  #bytes: IncomingBytes | Promise<IncomingBytes> | undefined;

  constructor(incoming: IncomingRequest, request: ProxyRequest, services: ProxyingServices) {
    this.#incoming = incoming;
    this.#request = request;
    this.#services = services;
  }

  /** Throws what the caller may not do, and whatever is wrong with the body. Confirms the caller. */
  decide(caller: ProxyCaller): Promise<Prepared> {
    caller.requireRight();
    const { proxy } = caller;
    // Before the body is asked for, and before a transform sees a request that cannot be sent.
    const target = targetAt(proxy.destination, this.#request.suffix);
    const { head } = this.#incoming;
    const hasBody = head.chunked || (head.contentLength ?? 0) > 0;
    if (mustReadBody(head.contentType, proxy) && (hasBody || proxy.request_transform !== null)) {
      return this.#decideOnBody(caller, target);
    }
    return this.#services.gate.read(proxy.tenant_id).then((reading) => {
      caller.confirm(reading);
      const body = hasBody ? this.#incoming.passBody() : undefined;
      const broughtOut = new BroughtOut();
      const headers = this.#sent(caller, broughtOut);
      return { target, headers, body, madeBytes: 0, broughtOut, tokenIds: [] };
    });
  }

  /** A body that is looked into, or given to a transform. */
  async #decideOnBody(caller: ProxyCaller, target: string): Promise<Prepared> {
    const { head, rawHeaders, callingRun } = this.#incoming;
    this.#bytes ??= this.#incoming.readBytes();
    const bytes = this.#bytes instanceof Promise ? await this.#bytes : this.#bytes;
    // Also of a request without a body, which may get one.
    const isCoded = readCoding(head.contentEncoding) !== 'identity';
    const forwarded = forwardedHeaders(rawHeaders);
    const { path, query } = this.#request.suffix;
    const prepared = await prepareRequest(
      {
        body: bytes.decoded,
        contentType: head.contentType,
        method: head.method,
        path,
        query,
        headers: isCoded ? withoutHeader(forwarded, 'content-encoding') : forwarded,
      },
      contextOf(caller, head.traceId, callingRun),
      this.#services,
    );
    if ('custom' in prepared) return prepared;
    // Nothing was put in or changed: the bytes that came are the bytes that go.
    const isEmpty = prepared.body === undefined && bytes.wire.length === 0;
    const isUntouched = isCoded && (isEmpty || prepared.body === bytes.decoded);
    const coding = isUntouched ? firstHeader(forwarded, 'content-encoding') : undefined;
    const { broughtOut, tokenIds } = prepared;
    const isMade = prepared.body !== undefined && prepared.body !== bytes.decoded;
    const headers = [...prepared.headers, ...(coding ? ['Content-Encoding', coding] : [])];
    return {
      target,
      headers: this.#sent(caller, broughtOut, headers),
      broughtOut,
      tokenIds,
      body: isUntouched && !isEmpty ? bytes.wire : prepared.body,
      madeBytes: isMade ? (prepared.body?.length ?? 0) : 0,
    };
  }

  #sent({ proxy }: ProxyCaller, broughtOut: BroughtOut, headers?: readonly string[]): string[] {
    const { rawHeaders, head } = this.#incoming;
    const decodes = proxy.response_transform !== null && head.method !== 'HEAD';
    // What is compressed all the same is decoded, or refused (destination-answer.ts).
    const masks = proxy.leak_tripwire === 'redact' && !broughtOut.isEmpty;
    const accept = masks ? 'identity' : decodes ? DECODABLE : undefined;
    return sentHeaders(headers ?? forwardedHeaders(rawHeaders), {
      traceId: head.traceId,
      accept,
    });
  }
}

/** What bodies and transforms need to know of a caller. */
export function contextOf(
  caller: ProxyCaller,
  traceId: string,
  callingRun?: CallingRun,
): ProxyContext {
  const { proxy } = caller;
  const confirm: ProxyContext['confirm'] = (reading) => caller.confirm(reading);
  return { proxy, right: caller, confirm, traceId, callingRun };
}
