/**
 * A card or account number must not be readable from what is stored in clear, or shown to callers
 * that may only see the mask: not from the id, the container, the mask, metadata or literals of
 * expressions, nor in a form that anybody turns back (design section 12).
 */
import { fieldError } from '../errors.ts';
import { stringifyJson } from '../json-text.ts';
import type { TokenDraft } from './token-draft.ts';
import { protectedNumbers, TOKEN_TYPES } from './token-types.ts';

/** Shorter numbers occur inside unrelated digits too often; `reveal_last: 4` shows them by design. */
const NUMBER_LENGTH_MIN = 5;
/** From this length on, a number is found even when it was cut up, turned around or encoded. */
const DISGUISED_LENGTH_MIN = 12;

/** Throws a 400 naming the first member that shows a number which `data` protects. */
export function refuseExposure(draft: TokenDraft, id: string, masked: unknown): void {
  for (const number of protectedNumbers(draft.type, draft.data)) {
    if (number.length < NUMBER_LENGTH_MIN) continue;
    const forms = disguisesOf(number);
    const refuse = (path: string, text: string): void => {
      if (shows(text, number, forms)) {
        throw fieldError(path, 'It must not contain the number it protects');
      }
    };
    refuse('id', id);
    refuse('containers', draft.container);
    // The masks of the types are known to hide what they must.
    if (draft.mask !== undefined && draft.mask !== TOKEN_TYPES[draft.type].mask) {
      refuse('mask', withoutRoutingNumber(stringifyJson([masked ?? null, draft.mask]), draft));
    }
    if (draft.metadata !== undefined) refuse('metadata', JSON.stringify(draft.metadata));
    if (draft.fingerprint_expression !== undefined) {
      refuse('fingerprint_expression', draft.fingerprint_expression);
    }
    refuse('search_indexes', draft.search_indexes.join('\n'));
  }
}

/** Encodings that filters offer, and the number turned around. */
function disguisesOf(number: string): string[] {
  if (number.length < DISGUISED_LENGTH_MIN) return [];
  const bytes = Buffer.from(number);
  return [
    [...number].reverse().join(''),
    // Without the last group, which depends on what follows.
    bytes.toString('base64').replace(/.{0,3}=*$/, ''),
    bytes.toString('hex'),
  ];
}

function shows(text: string, number: string, disguises: string[]): boolean {
  if (text.length < number.length) return false;
  if (text.includes(number)) return true;
  if (number.length < DISGUISED_LENGTH_MIN) return false;
  if (text.replace(/\D/g, '').includes(number)) return true;
  const lower = text.toLowerCase();
  return disguises.some((form) => text.includes(form) || lower.includes(form));
}

/** A bank's routing number is public and shown by its mask; an account number may be part of it. */
function withoutRoutingNumber(text: string, { type, data }: TokenDraft): string {
  if (type !== 'bank') return text;
  return text.replaceAll((data as { routing_number: string }).routing_number, '');
}
