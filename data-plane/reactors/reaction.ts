/**
 * One run of a reactor: its configuration, what its code may call out for, and its measures. Nothing of
 * a run's content reaches a log or a metric.
 */
import type { Via } from '../../shared/audit/audit-entry.ts';
import { validationError } from '../../shared/errors.ts';
import { stringifyJson } from '../../shared/json-text.ts';
import {
  castConfiguration,
  configurationProblems,
} from '../../shared/reactors/reactor-configuration.ts';
import {
  type ConfigurationValues,
  openConfiguration,
} from '../../shared/reactors/sealed-configuration.ts';
import {
  DEADLINE_MS_DEFAULT,
  monotonicNow,
  type ScriptRun,
} from '../../shared/sandbox/protocol.ts';
import type { ScriptService, ScriptServices } from '../../shared/sandbox/script-services.ts';
import type { CachedReactor } from '../config-cache/reactor-cache.ts';
import { applicationOf } from '../current-application.ts';
import type { Exchange, Right } from '../exchange.ts';
import type { Route } from '../serve-exchange.ts';
import type { ReactingServices } from '../services.ts';
import type { CallerRight } from './caller-right.ts';
import type { OpenedCvcs } from './opened-cvcs.ts';
import { requireEntitled, whileEntitled } from './while-entitled.ts';

export interface Reaction extends ScriptToRun {
  readonly reactor: CachedReactor;
  readonly right: CallerRight;
}

/** The code of a reactor, or of another thing that runs as one. */
export interface ScriptToRun {
  readonly reactor: Pick<
    CachedReactor,
    'tenant_id' | 'reactor_id' | 'application_id' | 'config_version' | 'code' | 'code_version'
  >;
  /** Whose code it is, unless the reactor's. */
  readonly via?: Via;
  /** By which the code runs: the caller's, and that of the run that calls, if there is one. */
  readonly right: Right;
  /** JSON texts. */
  readonly args: string;
  readonly configuration: string;
  /** Those of the arguments, and of what the code calls; absent where nobody knows of all. */
  readonly cvcs?: Pick<OpenedCvcs, 'due_at_ms'>;
}

/** What a run takes over from the request that asks for it. */
export interface RunOrigin {
  readonly head: Pick<Exchange['head'], 'traceId'>;
  readonly callingRun: Exchange['callingRun'];
  /** Unless it is the usual one. */
  readonly deadline_ms?: number;
}

export interface FinishedReaction extends ScriptRun {
  readonly duration_ms: number;
}

/**
 * JSON text of the configuration with the types that the formula declares; a promise only where it must be
 * opened. Throws 400 when it does not satisfy the formula, which may have been changed since.
 */
export function configurationText(
  { tenant_id, reactor_id, configuration, configuration_sealed }: CachedReactor,
  { dataKeys }: Pick<ReactingServices, 'dataKeys'>,
): string | Promise<string> {
  const textOf = (values: ConfigurationValues): string => {
    const problems = configuration === null ? {} : configurationProblems(configuration, values);
    if (Object.keys(problems).length > 0) throw validationError(problems);
    return stringifyJson(castConfiguration(configuration ?? undefined, values));
  };
  if (configuration_sealed === null) return textOf({});
  const owner = { kind: 'reactor', tenant_id, id: reactor_id } as const;
  return openConfiguration(dataKeys, owner, configuration_sealed).then(textOf);
}

/** Runs the code once; `react` is the route that serves `req.bt.reactors.react`. */
export async function runReaction(
  reaction: ScriptToRun,
  exchange: RunOrigin,
  services: ReactingServices,
  react: Route,
): Promise<FinishedReaction> {
  const { sandbox, metrics } = services.reactions;
  const { reactor, args, configuration, cvcs } = reaction;
  const { tenant_id, reactor_id, code, code_version } = reactor;
  const deadline_ms = timeLeft(exchange);
  const offered = servicesFor(reaction, deadline_ms, exchange, services, react);
  const callingOut = offered instanceof Promise ? await offered : offered;
  // What is left in a context would be in later runs' answers, which are kept as if it were not.
  const mayKeep = () => cvcs?.due_at_ms === null;
  const startedAt = performance.now();
  metrics.inFlight.inc();
  let run: ScriptRun;
  try {
    run = await sandbox.run({
      tenant_id,
      args,
      configuration,
      deadline_ms,
      source: code,
      // A context that is kept belongs to one reactor, not to all of its formula.
      script_version: sandbox.reuse ? `${reactor_id}/${code_version}` : code_version,
      reuse: sandbox.reuse && mayKeep(),
      mayKeep,
      nested: exchange.callingRun !== undefined,
      services: callingOut,
    });
  } finally {
    metrics.inFlight.dec();
  }
  const duration_ms = performance.now() - startedAt;
  metrics.reactions.inc({ outcome: run.result.kind });
  metrics.duration.observe(duration_ms / 1000);
  return { ...run, duration_ms };
}

/** 30 s unless the call says otherwise, and never longer than the run that waits for this one. */
function timeLeft({ callingRun, deadline_ms = DEADLINE_MS_DEFAULT }: RunOrigin): number {
  if (callingRun === undefined) return deadline_ms;
  const left = callingRun.ends_at_ms - monotonicNow();
  return Math.min(DEADLINE_MS_DEFAULT, Math.max(1, left));
}

/** A promise only where the script has an application. */
function servicesFor(
  script: ScriptToRun,
  deadline_ms: number,
  exchange: RunOrigin,
  services: ReactingServices,
  react: Route,
): ScriptServices | Promise<ScriptServices> {
  const { tenant_id, application_id } = script.reactor;
  // Values leave with a fetch: the right to them is asked for when it is sent, not when it queues.
  const beforeSend = () => requireEntitled(script.right);
  const fetch = services.reactions.scriptFetch.fetchFor(tenant_id, beforeSend);
  if (application_id === null) return { fetch };
  return servicesWithClient(script, application_id, fetch, deadline_ms, exchange, services, react);
}

async function servicesWithClient(
  { reactor, via, right }: ScriptToRun,
  application_id: string,
  fetch: ScriptService,
  deadline_ms: number,
  exchange: RunOrigin,
  services: ReactingServices,
  react: Route,
): Promise<ScriptServices> {
  const { tenant_id, reactor_id, config_version } = reactor;
  // Without the application there is no client, as if none had been configured.
  if ((await applicationOf(reactor, config_version, services)) === undefined) return { fetch };
  const findApplication = () => services.applications.byId(tenant_id, application_id);
  const caller = {
    via: via ?? { type: 'reactor' as const, id: reactor_id },
    right,
    depth: (exchange.callingRun?.depth ?? 0) + 1,
    ends_at_ms: monotonicNow() + deadline_ms,
    traceId: exchange.head.traceId,
    findApplication,
  };
  const calls = services.reactions.scriptCalls(caller, { services, react });
  return { fetch, bt: whileEntitled(calls, right) };
}
