/**
 * `POST /reactors/{id}/react`: detokenize the arguments, hold them against the formula, run the code,
 * make the tokens it asks for, answer (spec: Reactors; facts 9.3).
 */
import { react as operation } from '../../shared/api/reactors.ts';
import { compileValidator } from '../../shared/api/validate.ts';
import { ApiError, fieldError } from '../../shared/errors.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { CallerRight } from '../reactors/caller-right.ts';
import { findReactor } from '../reactors/find-reactor.ts';
import {
  configurationText,
  type FinishedReaction,
  type Reaction,
  runReaction,
} from '../reactors/reaction.ts';
import { type ReactionInput, readArguments } from '../reactors/read-arguments.ts';
import { type Returned, ReturnedError, readReturned } from '../reactors/returned.ts';
import { failureAnswer, runtimeError } from '../reactors/script-failure.ts';
import { tokenizeReturned } from '../reactors/tokenize-returned.ts';
import type { ReactingServices, Services } from '../services.ts';
import { requireHeld } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';

/** Most bytes of a body that is searched for expressions (design section 12). */
const BODY_BYTES_MAX = 5 * 1024 * 1024;
/** Existing clients send one or the other. */
const CALLBACK_MEMBERS = ['callback_url', 'callbackUrl'];

const validate = compileValidator(operation.body);

export async function react(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:use');
  if (!canReact(services)) throw new ApiError('unavailable', 'No reactors are run here');
  const reactor = await findReactor(exchange.params.id ?? '', application, services);
  const body = validate(await readTokenBody(exchange, 'json', BODY_BYTES_MAX));
  refuseCallback(body);
  const right = new CallerRight(exchange, application, reactor, services);
  const context = { exchange, application, reactor, right };
  const configuration = await configurationText(reactor, services);
  const input = await readArguments(body.args, configuration, context, services);
  // Confirmed just now: whatever changes from here on, the code runs once.
  const reaction = { reactor, right, ...input };
  const finished = await runReaction(reaction, exchange, services, react);
  return answer(finished, reaction, services);
}

function canReact(services: Services): services is ReactingServices {
  return services.reactions !== undefined;
}

/** Asynchronous reactions are not served yet; running one synchronously would lose its answer. */
function refuseCallback(body: object): void {
  for (const name of CALLBACK_MEMBERS) {
    const value: unknown = Object.hasOwn(body, name) ? Reflect.get(body, name) : null;
    if (value !== null) throw fieldError(name, 'Asynchronous reactions are not available yet');
  }
}

async function answer(
  finished: FinishedReaction,
  reaction: Reaction & Pick<ReactionInput, 'secrets'>,
  services: Services,
): Promise<Answer> {
  const { result } = finished;
  const debug = debugText(finished, reaction.secrets);
  if (result.kind === 'busy') return failureAnswer(result, debug);
  // What comes out of a script may be made of what went in.
  await reaction.right.current();
  if (result.kind !== 'ok') return failureAnswer(result, debug);
  let returned: Returned;
  try {
    returned = readReturned(result.value);
  } catch (error) {
    if (error instanceof ReturnedError) return runtimeError(error.message, debug);
    throw error;
  }
  const tokens = await tokensOf(returned, reaction, services);
  const members = Object.entries({ tokens, raw: returned.raw, _debug: debug });
  const present = members.filter(([, json]) => json !== undefined);
  return { status: 200, body: `{${present.map(([name, json]) => `"${name}":${json}`).join(',')}}` };
}

async function tokensOf(
  { tokenize }: Returned,
  { reactor, right }: Reaction,
  services: Services,
): Promise<string | undefined> {
  return tokenize === undefined ? undefined : tokenizeReturned(tokenize, right, reactor, services);
}

/** JSON text of `_debug`; `undefined` when nobody debugs the reactor. */
function debugText(
  { console, duration_ms }: FinishedReaction,
  secrets: ReactionInput['secrets'],
): string | undefined {
  if (secrets === undefined) return undefined;
  return JSON.stringify({
    console: secrets.redact(console),
    duration_ms: Math.round(duration_ms),
  });
}
