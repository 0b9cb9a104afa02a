/** What a script may ask of the gateway while it runs. Whoever starts a run hands these in; none is global. */

/**
 * Carries out a call of a script in the gateway. The texts are JSON. `signal` aborts when the run is over
 * or nobody waits any more. Reject with a ScriptCallError for what the script may read; any other
 * rejection reads "The call failed." inside.
 */
export type ScriptService = (request: string, signal: AbortSignal) => Promise<string>;

/** Absent: the script finds that it is not available. */
export interface ScriptServices {
  readonly fetch?: ScriptService;
  readonly bt?: ScriptService;
}

/** A failed call; `message` and `code` are all that the script gets to see of it. */
export class ScriptCallError extends Error {
  override readonly name = 'ScriptCallError';
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}
