/** Asks the gateway's side of fetch as a sandbox host would: text in, JSON text out. */

import type { EgressSettings } from '../../../shared/egress/create-egress.ts';
import {
  createScriptFetch,
  type ScriptFetch,
  type ScriptFetchLimits,
} from '../../../shared/sandbox/script-fetch.ts';
import { ScriptCallError } from '../../../shared/sandbox/script-services.ts';
import { startEgress, type TestEgress } from '../egress/destinations.ts';

export interface Answer {
  readonly url: string;
  readonly redirected: boolean;
  readonly status: number;
  readonly status_text: string;
  readonly headers: [string, string][];
  readonly text?: string;
  readonly base64?: string;
}

export interface Asking {
  readonly egress: TestEgress;
  readonly fetches: ScriptFetch;
  ask(url: string, changes?: object, signal?: AbortSignal, tenant?: string): Promise<Answer>;
  /** The body, in whichever form it comes. */
  textOf(url: string, changes?: object, signal?: AbortSignal, tenant?: string): Promise<string>;
  /** What a fetch that must fail is rejected with. */
  failure(
    url: string,
    changes?: object,
    signal?: AbortSignal,
    tenant?: string,
  ): Promise<ScriptCallError>;
}

export interface AskingSettings extends Partial<EgressSettings> {
  /** As of SALLYPORT_EGRESS_ALLOW. */
  readonly allowed?: string;
  /** The addresses of every name, one element per resolution. */
  readonly answers?: readonly (readonly string[])[];
  readonly limits?: Partial<ScriptFetchLimits>;
}

/** A request as scripts send it; `text` or `base64` is its body. */
export function messageOf(changes: object & { text?: string; base64?: string }): string {
  const { text, base64, ...head } = changes;
  const body = text === undefined ? base64 : text;
  const coding = text === undefined ? 'base64' : 'text';
  return `${JSON.stringify({
    ...{ method: 'GET', headers: [], redirect: 'follow', decode: true, ...head },
    ...(body === undefined ? {} : { body: coding }),
  })}\n${body ?? ''}`;
}

export function startAsking({ allowed, answers, limits, ...more }: AskingSettings = {}): Asking {
  const egress = startEgress(allowed ?? '127.0.0.0/8', answers ?? [['127.0.0.1']], more);
  const fetches = createScriptFetch({ egress, ...(limits === undefined ? {} : { limits }) });
  const ask: Asking['ask'] = async (url, changes, signal, tenant = 'tenant') => {
    const over = signal ?? new AbortController().signal;
    const text = await fetches.fetchFor(tenant)(messageOf(Object.assign({ url }, changes)), over);
    return JSON.parse(text) as Answer;
  };
  const textOf: Asking['textOf'] = async (...asked) => {
    const { text, base64 = '' } = await ask(...asked);
    return text ?? Buffer.from(base64, 'base64').toString();
  };
  return {
    ...{ egress, fetches, ask, textOf },
    failure: async (...asked) => {
      const error: unknown = await ask(...asked).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error instanceof ScriptCallError) return error;
      throw new Error('it did not fail as a fetch of a script does', { cause: error });
    },
  };
}
