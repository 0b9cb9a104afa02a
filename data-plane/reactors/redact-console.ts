/**
 * What a script wrote to its console, for the one who debugs it: without the values that this request
 * brought out of the vault. Whatever a script computes from a value is its own to keep quiet about.
 */
import type { ConsoleLine } from '../../shared/sandbox/protocol.ts';

/** Shorter values are in any text. */
const SECRET_LENGTH_MIN = 4;
/** With more secrets than this nothing is shown: looking for each would hold up everybody's requests. */
const SECRETS_MAX = 300;
/** And with more text in them: a pattern of megabytes takes seconds, or fails and quotes itself. */
const SECRETS_LENGTH_MAX = 16 * 1024;
/** Text of all lines: as much as a host keeps, whatever it sends. */
const CONSOLE_LENGTH_MAX = 64 * 1024;
const REDACTED = '[redacted]';
const SEPARATORS = /[\s-]/g;

/** The values of one request that its console must not show. */
export class Secrets {
  readonly #values = new Set<string>();
  #length = 0;
  #isFull = false;

  /** All texts and numbers inside a value. */
  add(value: unknown): void {
    if (this.#isFull) return;
    if (typeof value === 'object' && value !== null) {
      for (const item of Object.values(value)) this.add(item);
      return;
    }
    const text = value === null ? '' : String(value);
    if (text.length < SECRET_LENGTH_MIN || typeof value === 'boolean') return;
    if (this.#values.has(text)) return;
    this.#length += text.length;
    this.#isFull = this.#values.size >= SECRETS_MAX || this.#length > SECRETS_LENGTH_MAX;
    if (!this.#isFull) this.#values.add(text);
  }

  /** What is in `after` and was not in the same place of `before`: there something was put in. */
  addChanges(before: unknown, after: unknown): void {
    if (before === after || this.#isFull) return;
    if (!isTree(before) || !isTree(after)) {
      this.add(after);
      return;
    }
    for (const [name, item] of Object.entries(after)) {
      this.addChanges(Object.hasOwn(before, name) ? before[name] : undefined, item);
    }
  }

  /** The lines, at most 64 Ki characters of them, with `[redacted]` in place of every secret. */
  redact(lines: readonly ConsoleLine[]): ConsoleLine[] {
    const secret = this.#isFull ? /^[\s\S]+$/ : this.#pattern();
    let left = CONSOLE_LENGTH_MAX;
    return lines.map(({ level, text }) => {
      const redacted = secret === undefined ? text : text.replace(secret, REDACTED);
      const shown = redacted.slice(0, left);
      left -= shown.length;
      return { level, text: shown };
    });
  }

  #pattern(): RegExp | undefined {
    const forms = new Set([...this.#values].flatMap(formsOf));
    if (forms.size === 0) return undefined;
    // The longest first: of two that begin alike, the one that holds the other.
    const longestFirst = [...forms].sort((a, b) => b.length - a.length);
    return new RegExp(longestFirst.map(RegExp.escape).join('|'), 'g');
  }
}

/** As it is, without spaces and dashes, in groups of four, and each as JSON says it inside quotes. */
function formsOf(value: string): string[] {
  const bare = value.replace(SEPARATORS, '');
  const forms = [value];
  if (bare.length >= SECRET_LENGTH_MIN) {
    forms.push(bare);
    const groups = bare.match(/.{1,4}/gsu) ?? [];
    forms.push(groups.join(' '), groups.join('-'));
  }
  return forms.flatMap((form) => [form, JSON.stringify(form).slice(1, -1)]);
}

function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
