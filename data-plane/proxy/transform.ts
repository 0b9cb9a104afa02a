/**
 * Runs the transforms of proxies: customers' code that rewrites a message on its way. It runs as the
 * code of a reactor does, in the sandbox, with the rights of the proxy's application.
 */
import { ApiError } from '../../shared/errors.ts';
import { stringifyJson } from '../../shared/json-text.ts';
import { castConfiguration } from '../../shared/reactors/reactor-configuration.ts';
import { openConfiguration } from '../../shared/reactors/sealed-configuration.ts';
import { REQUEST_BYTES_MAX } from '../../shared/sandbox/protocol.ts';
import type { Answer } from '../exchange.ts';
import { runReaction } from '../reactors/reaction.ts';
import { withCallingRun } from '../reactors/while-entitled.ts';
import { react } from '../routes/react.ts';
import type { ReactingServices, Services } from '../services.ts';
import type { ProxyContext, ProxyTransform, TransformedProxy } from './transform-context.ts';
import { customResponse } from './transform-failure.ts';

/** JSON text of what the code returned, or the whole response that it chose to be. */
export type Transformed = { readonly returned: string } | { readonly custom: Answer };

/** The caller must have been confirmed. `tooLarge`: what to throw when `args` do not fit. */
export async function runTransform(
  { code, code_version }: ProxyTransform,
  args: string,
  tooLarge: () => Error,
  context: ProxyContext,
  services: Services,
): Promise<Transformed> {
  if (!canTransform(services)) {
    throw new ApiError('unavailable', 'No transforms are run here');
  }
  const { proxy, traceId, callingRun } = context;
  const right = withCallingRun(context.right, callingRun);
  const { tenant_id, proxy_id, application_id, config_version } = proxy;
  const configuration = await configurationOf(proxy, services);
  if (Buffer.byteLength(args) + Buffer.byteLength(configuration) > REQUEST_BYTES_MAX) {
    throw tooLarge();
  }
  const reactor = { tenant_id, reactor_id: proxy_id, application_id, config_version };
  const { result } = await runReaction(
    {
      reactor: { ...reactor, code, code_version },
      via: { type: 'proxy', id: proxy_id },
      right,
      args,
      configuration,
    },
    { head: { traceId }, callingRun },
    services,
    react,
  );
  // What comes out of a script may be made of what went in.
  if (result.kind !== 'busy') await right.current();
  return result.kind === 'ok' ? { returned: result.value } : { custom: customResponse(result) };
}

function canTransform(services: Services): services is ReactingServices {
  return services.reactions !== undefined;
}

/** JSON text. */
async function configurationOf(
  { tenant_id, proxy_id, configuration_sealed }: TransformedProxy,
  { dataKeys }: Services,
): Promise<string> {
  const owner = { kind: 'proxy', tenant_id, id: proxy_id } as const;
  const values = await openConfiguration(dataKeys, owner, configuration_sealed);
  return stringifyJson(castConfiguration(undefined, values));
}
