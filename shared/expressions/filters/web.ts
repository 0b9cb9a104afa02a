/** Liquid's filters for HTML, URLs and base64. Everything here is linear in its input. */
import { ExpressionError } from '../expression-error.ts';
import { type Filter, textFilter } from './filter.ts';

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&#34;'],
  ["'", '&#39;'],
]);

const CHARACTERS = new Map([...ENTITIES].map(([character, entity]) => [entity, character]));

/** What `strip_html` takes out, tried in this order at each `<`. */
const HTML_BLOCKS: readonly (readonly [opener: string, closer: string])[] = [
  ['<script', '</script>'],
  ['<style', '</style>'],
  ['<!--', '-->'],
  ['<', '>'],
];

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const BASE64_URL = /^[A-Za-z0-9_-]*={0,2}$/;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function escapeHtml(value: string): string {
  return value.replaceAll(/[&<>"']/g, (character) => ENTITIES.get(character) ?? character);
}

function unescapeHtml(value: string): string {
  return value.replaceAll(/&(?:amp|lt|gt|#34|#39);/g, (entity) => CHARACTERS.get(entity) ?? entity);
}

/**
 * A search for a closer that was not found is not repeated: from then on the opener cannot match,
 * which keeps `<script<script<script` linear.
 */
function stripHtml(value: string): string {
  let blocks = HTML_BLOCKS;
  let out = '';
  let index = 0;
  for (;;) {
    const open = value.indexOf('<', index);
    if (open < 0) return out + value.slice(index);
    out += value.slice(index, open);
    let end = -1;
    for (const block of blocks) {
      if (!value.startsWith(block[0], open)) continue;
      const close = value.indexOf(block[1], open + block[0].length);
      if (close < 0) {
        blocks = blocks.filter((other) => other !== block);
        continue;
      }
      end = close + block[1].length;
      break;
    }
    if (end < 0) return out + value.slice(open);
    index = end;
  }
}

function urlEncode(value: string): string {
  if (!value.isWellFormed()) throw new ExpressionError('The text has half of a character');
  return encodeURIComponent(value).replaceAll('%20', '+');
}

function urlDecode(value: string): string {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    throw new ExpressionError('The text is not URL-encoded');
  }
}

function decodeBase64(value: string, alphabet: RegExp): string {
  if (!alphabet.test(value)) throw new ExpressionError('The text is not base64');
  try {
    return strictUtf8.decode(Buffer.from(value, 'base64'));
  } catch {
    throw new ExpressionError('The decoded bytes are not text');
  }
}

export const WEB_FILTERS: Readonly<Record<string, Filter>> = {
  escape: textFilter(escapeHtml),
  escape_once: textFilter((value) => escapeHtml(unescapeHtml(value))),
  strip_html: textFilter(stripHtml),
  url_encode: textFilter(urlEncode),
  url_decode: textFilter(urlDecode),
  base64_encode: textFilter((value) => Buffer.from(value, 'utf8').toString('base64')),
  base64_decode: textFilter((value) => decodeBase64(value, BASE64)),
  base64_url_safe_encode: textFilter((value) => Buffer.from(value, 'utf8').toString('base64url')),
  base64_url_safe_decode: textFilter((value) => decodeBase64(value, BASE64_URL)),
};
