/**
 * `POST /reactors/{id}/react`: detokenize the arguments, hold them against the formula, run the code,
 * make the tokens it asks for, answer (spec: Reactors; facts 9.3). With a callback all of that happens
 * later, and what it comes to is sent there (facts 9.5).
 */
import { react as operation } from '../../shared/api/reactors.ts';
import { compileValidator } from '../../shared/api/validate.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { acceptReaction } from '../reactors/accept-reaction.ts';
import { readAsyncMembers } from '../reactors/async-members.ts';
import { CallerRight } from '../reactors/caller-right.ts';
import { findReactor, requireReactions } from '../reactors/find-reactor.ts';
import { debugText, outcomeOf, returnedAnswer } from '../reactors/finished-answer.ts';
import { keepReaction, type MakeWithAnswer } from '../reactors/keep-reaction.ts';
import { OpenedCvcs } from '../reactors/opened-cvcs.ts';
import { configurationText, type Reaction, runReaction } from '../reactors/reaction.ts';
import { type ReactionInput, readArguments } from '../reactors/read-arguments.ts';
import { tokenizeReturned } from '../reactors/tokenize-returned.ts';
import type { ReactingServices, Services } from '../services.ts';
import { requireHeld } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';

/** Most bytes of a body that is searched for expressions (design section 12). */
const BODY_BYTES_MAX = 5 * 1024 * 1024;

const validate = compileValidator(operation.body);

/**
 * Arguments are optional. Client libraries that are given none send no body: of no type, or announced as the
 * form that their HTTP library takes everything for.
 */
export function readReactBody(exchange: Exchange): unknown {
  return exchange.isBodyless ? {} : readTokenBody(exchange, 'json', BODY_BYTES_MAX);
}

export async function react(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:use');
  requireReactions(services);
  const finding = findReactor(exchange.params.id ?? '', application, services);
  const reactor = finding instanceof Promise ? await finding : finding;
  const body = validate(await readReactBody(exchange));
  const async = readAsyncMembers(body, services.reactions.egressAllow);
  if (async !== undefined) {
    const call = { args: body.args, ...async };
    const accepted = () => ({ status: 202, body: '{}' });
    return acceptReaction(call, { exchange, application, reactor }, services, accepted);
  }
  const right = new CallerRight(exchange, application, reactor, services);
  const context = { exchange, application, reactor, right };
  const configuring = configurationText(reactor, services);
  const configuration = typeof configuring === 'string' ? configuring : await configuring;
  const cvcs = new OpenedCvcs();
  const watched = cvcs.watch(services);
  const input = await readArguments(body.args, configuration, context, watched);
  // Confirmed just now: whatever changes from here on, the code runs once.
  const reaction = { reactor, right, cvcs, ...input };
  return keepReaction(exchange, reaction, services, (makeWithAnswer) =>
    runAndAnswer(reaction, exchange, watched, makeWithAnswer),
  );
}

async function runAndAnswer(
  reaction: Reaction & Pick<ReactionInput, 'secrets'>,
  exchange: Exchange,
  services: ReactingServices,
  makeWithAnswer?: MakeWithAnswer,
): Promise<Answer> {
  const { reactor, right, secrets } = reaction;
  const finished = await runReaction(reaction, exchange, services, react);
  const debug = debugText(finished, secrets);
  // What comes out of a script may be made of what went in.
  if (finished.result.kind !== 'busy') {
    const confirming = right.recent();
    if (confirming !== undefined) await confirming;
  }
  const outcome = outcomeOf(finished, debug);
  if ('answer' in outcome) return outcome.answer;
  const { returned } = outcome;
  const answerOf = (tokens?: string): Answer => returnedAnswer(returned, tokens, debug);
  if (returned.tokenize === undefined) return answerOf();
  const transact = makeWithAnswer?.(answerOf);
  return answerOf(await tokenizeReturned(returned.tokenize, right, reactor, services, transact));
}
