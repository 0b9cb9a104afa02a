/**
 * The arguments of a reaction: detokenized with the caller's rights, then held against the formula.
 * When this returns, the caller was confirmed, just now.
 */

import type { ConfigReading } from '../../shared/config-entries/config-version.ts';
import { ApiError } from '../../shared/errors.ts';
import { stringifyJson } from '../../shared/json-text.ts';
import { REQUEST_BYTES_MAX } from '../../shared/sandbox/protocol.ts';
import { detokenize } from '../../shared/tokens/detokenize.ts';
import type { TokenOpener } from '../../shared/tokens/reveal.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CachedReactor } from '../config-cache/reactor-cache.ts';
import type { Exchange } from '../exchange.ts';
import { recordAccess } from '../record-access.ts';
import type { Services } from '../services.ts';
import { prepareArguments } from './arguments.ts';
import type { CallerRight } from './caller-right.ts';
import { Secrets } from './redact-console.ts';

export interface ReactionInput {
  /** JSON texts, small enough for the sandbox. */
  readonly args: string;
  readonly configuration: string;
  /** What a console of this run must not show; `undefined` when nobody debugs the reactor. */
  readonly secrets: Secrets | undefined;
}

/** Whose arguments, for what. */
export interface ArgumentsContext {
  readonly exchange: Exchange;
  readonly application: CachedApplication;
  readonly reactor: CachedReactor;
  readonly right: CallerRight;
}

/** `configuration`: JSON text. Throws what `detokenize` and `prepareArguments` throw. */
export async function readArguments(
  given: unknown,
  configuration: string,
  { exchange, application, reactor, right }: ArgumentsContext,
  services: Services,
): Promise<ReactionInput> {
  const { tenant_id } = application;
  let confirmedAt_ms = 0;
  const confirm = (reading: ConfigReading): void => {
    exchange.confirm(application, reading);
    confirmedAt_ms = reading.now_ms;
  };
  const secrets = reactor.debug_until_ms === null ? undefined : new Secrets();
  const detokenizing = detokenize(given, 'args', {
    tenant_id,
    access: right.access,
    permission: 'token:use',
    confirm,
    accessed: (tokens) => recordAccess('use', tokens, right.origin, application, services),
    readers: services.readers,
    made: services.madeInRun,
    opener: secrets === undefined ? services.opener : recording(services.opener, secrets),
  });
  const { value, token_ids } = detokenizing instanceof Promise ? await detokenizing : detokenizing;
  const args = stringifyJson(prepareArguments(reactor.request_parameters ?? [], value));
  if (Buffer.byteLength(args) + Buffer.byteLength(configuration) > REQUEST_BYTES_MAX) {
    throw new ApiError('payload_too_large', 'The detokenized arguments are too large');
  }
  if (token_ids.length === 0) {
    // Of the time before it was asked: what it says was true then or later.
    const askedAt_ms = performance.now();
    confirm(await services.gate.read(tenant_id));
    right.confirmedAt(askedAt_ms);
  }
  services.countTokens('detokenize', token_ids.length);
  const isDebugged = reactor.debug_until_ms !== null && reactor.debug_until_ms > confirmedAt_ms;
  if (!isDebugged) return { args, configuration, secrets: undefined };
  secrets?.addChanges(given, value);
  secrets?.add(JSON.parse(configuration));
  return { args, configuration, secrets };
}

/** An opener that tells what it opened. */
function recording(opener: TokenOpener, secrets: Secrets): TokenOpener {
  return {
    async open(tenantId, row) {
      const payload = await opener.open(tenantId, row);
      secrets.add(JSON.parse(payload.data));
      return payload;
    },
    async openCvc(tenantId, row) {
      const cvc = await opener.openCvc(tenantId, row);
      secrets.add(cvc ?? null);
      return cvc;
    },
  };
}
