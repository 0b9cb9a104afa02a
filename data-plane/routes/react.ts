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
import {
  configurationText,
  type FinishedReaction,
  type Reaction,
  runReaction,
} from '../reactors/reaction.ts';
import { type ReactionInput, readArguments } from '../reactors/read-arguments.ts';
import { tokenizeReturned } from '../reactors/tokenize-returned.ts';
import type { Services } from '../services.ts';
import { requireHeld } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';

/** Most bytes of a body that is searched for expressions (design section 12). */
export const BODY_BYTES_MAX = 5 * 1024 * 1024;

const validate = compileValidator(operation.body);

export async function react(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:use');
  requireReactions(services);
  const reactor = await findReactor(exchange.params.id ?? '', application, services);
  const body = validate(await readTokenBody(exchange, 'json', BODY_BYTES_MAX));
  const async = readAsyncMembers(body, services.reactions.egressAllow);
  if (async !== undefined) {
    const call = { args: body.args, ...async };
    const accepted = () => ({ status: 202, body: '{}' });
    return acceptReaction(call, { exchange, application, reactor }, services, accepted);
  }
  const right = new CallerRight(exchange, application, reactor, services);
  const context = { exchange, application, reactor, right };
  const configuration = await configurationText(reactor, services);
  const cvcs = new OpenedCvcs();
  const watched = cvcs.watch(services);
  const input = await readArguments(body.args, configuration, context, watched);
  // Confirmed just now: whatever changes from here on, the code runs once.
  const reaction = { reactor, right, cvcs, ...input };
  return keepReaction(exchange, reaction, services, async (makeWithAnswer) => {
    const finished = await runReaction(reaction, exchange, watched, react);
    return answer(finished, reaction, services, makeWithAnswer);
  });
}

async function answer(
  finished: FinishedReaction,
  { reactor, right, secrets }: Reaction & Pick<ReactionInput, 'secrets'>,
  services: Services,
  makeWithAnswer?: MakeWithAnswer,
): Promise<Answer> {
  const debug = debugText(finished, secrets);
  // What comes out of a script may be made of what went in.
  if (finished.result.kind !== 'busy') await right.current();
  const outcome = outcomeOf(finished, debug);
  if ('answer' in outcome) return outcome.answer;
  const { returned } = outcome;
  const answerOf = (tokens?: string): Answer => returnedAnswer(returned, tokens, debug);
  if (returned.tokenize === undefined) return answerOf();
  const transact = makeWithAnswer?.(answerOf);
  return answerOf(await tokenizeReturned(returned.tokenize, right, reactor, services, transact));
}
