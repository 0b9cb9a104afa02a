/** `POST /tokenize`: any JSON with its values replaced by new tokens, all or none (facts 7.2). */
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';
import { tokenizeBody } from '../tokenize-body.ts';
import { refuseTransaction, requireHeld } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';

export async function tokenize(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:create');
  refuseTransaction(exchange.head.transactionId);
  const body = await readTokenBody(exchange, 'json');
  const confirm = exchange.confirm.bind(exchange, application);
  return { status: 200, body: await tokenizeBody(body, { application, confirm }, services) };
}
