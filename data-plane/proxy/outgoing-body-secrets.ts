/** Which texts of a request came out of the vault: what a destination should not answer back. */
import type { DetokenizedBody } from './body-texts.ts';

/** Shorter ones are in any answer. */
const SECRET_LENGTH_MIN = 8;
/** Each is looked for in the answer; a hundred cards have a hundred numbers. */
const SECRETS_MAX = 1_000;

/**
 * The texts and numbers inside the data of the tokens, and those that expressions made of them, each
 * once; at most 1,000.
 */
export function secretsOf({
  views,
  values,
}: Pick<DetokenizedBody, 'views' | 'values'>): readonly string[] {
  const secrets = new Set<string>();
  for (const { data } of views.values()) addLeaves(data, secrets);
  // Of a whole token that was put in, only the data is a secret; that is in its view.
  for (const value of values) if (typeof value !== 'object') addLeaves(value, secrets);
  return [...secrets];
}

function addLeaves(value: unknown, secrets: Set<string>): void {
  if (secrets.size >= SECRETS_MAX) return;
  if (typeof value === 'object' && value !== null) {
    for (const item of Object.values(value)) addLeaves(item, secrets);
  } else if (typeof value === 'string' || typeof value === 'number') {
    const text = String(value);
    if (text.length >= SECRET_LENGTH_MIN) secrets.add(text);
  }
}
