/**
 * One run of a script in a sandbox as the data plane has it: the same host program, bounds and egress
 * guard, without a database. No host outlives the call, however it ends.
 */
import type { Environment } from '../config/environment.ts';
import { failureLine } from '../embedded/failure-line.ts';
import { createEgress } from '../shared/egress/create-egress.ts';
import type { EgressError } from '../shared/egress/egress-error.ts';
import { readCaFile } from '../shared/egress/trusted-tls.ts';
import type { Logger } from '../shared/observability/logger.ts';
import type { ScriptRun } from '../shared/sandbox/protocol.ts';
import { createScriptFetch, type ScriptFetch } from '../shared/sandbox/script-fetch.ts';
import { type ScriptRequest, Supervisor } from '../shared/sandbox/supervisor.ts';
import { InputError } from './reactor-input.ts';

export type Attempt =
  | { readonly kind: 'ended'; readonly run: ScriptRun; readonly duration_ms: number }
  /** `error`: why no host could be started. */
  | { readonly kind: 'no_sandbox'; readonly error: unknown }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals };

/** Hosts are sessions of their own: these reach nobody but this process. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const TENANT_ID = 'reactor-run';

type Settings = Pick<Environment, 'egressAllow' | 'egressCaFile' | 'sandboxStrict'>;

/**
 * Throws InputError when SALLYPORT_EGRESS_CA_FILE cannot be used. Opens nothing. `onRefused` gets what the
 * script is told of a connection that the guard does not make.
 */
export function openFetch(
  { egressAllow, egressCaFile }: Settings,
  onRefused: (message: string) => void,
): ScriptFetch {
  const extraCa = egressCaFile === undefined ? [] : certificatesOf(egressCaFile);
  const refuse = ({ message }: EgressError): void => onRefused(message);
  const egress = createEgress({ allow: egressAllow, extraCa, onRefused: refuse });
  return createScriptFetch({ egress });
}

function certificatesOf(file: string): string[] {
  try {
    return readCaFile(file);
  } catch (error) {
    throw new InputError(failureLine(error));
  }
}

/** Runs the script once; a signal ends it. Closes `fetches`. */
export async function runInSandbox(
  script: Pick<ScriptRequest, 'source' | 'args' | 'configuration' | 'deadline_ms'>,
  fetches: ScriptFetch,
  { sandboxStrict: strict }: Settings,
  log: Logger,
): Promise<Attempt> {
  const { promise: signalled, resolve } = Promise.withResolvers<Attempt>();
  const onSignal = (signal: NodeJS.Signals): void => resolve({ kind: 'signal', signal });
  for (const signal of SIGNALS) process.once(signal, onSignal);
  const starting = Supervisor.start({ host_count: 1, thread_count: 1, spares: false, strict });
  const attempt = async (): Promise<Attempt> => {
    let supervisor: Supervisor;
    try {
      supervisor = await starting;
    } catch (error) {
      return { kind: 'no_sandbox', error };
    }
    if (supervisor.status().network === 'shared') {
      log.warn('the sandbox shares the network of this machine: there is no namespace for it');
    }
    const startedAt = performance.now();
    const run = await supervisor.run({
      ...script,
      ...{ tenant_id: TENANT_ID, script_version: '1' },
      services: { fetch: fetches.fetchFor(TENANT_ID) },
    });
    return { kind: 'ended', run, duration_ms: Math.round(performance.now() - startedAt) };
  };
  try {
    return await Promise.race([signalled, attempt()]);
  } finally {
    // A second Ctrl-C does not wait for anything; a host ends when its pipe does.
    for (const signal of SIGNALS) process.off(signal, onSignal);
    const started = await starting.catch(() => undefined);
    await started?.close();
    await fetches.close();
  }
}
