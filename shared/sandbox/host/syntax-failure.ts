/** What the writer of a script is told when it does not compile. */

export interface SyntaxFailure {
  readonly message: string;
  readonly line: number | undefined;
}

/** How V8 names a syntax error's place: `[script.js:3:14]`. */
const PLACE = /\[script\.js:(\d+)/;
const PLACE_AT_END = / \[script\.js:[\d:]+\]$/;
/** V8's words for an ECMAScript module, the most common mistake of all. */
const OF_A_MODULE = /^(?:Unexpected token 'export'|Cannot use import statement)/;
const COMMON_JS =
  'Code is CommonJS: it has `require` and assigns its function to `module.exports`.';

/** `error`: as compiling `source` threw it. The message may quote a word of the code. */
export function syntaxFailure(error: unknown, source: string): SyntaxFailure {
  const { message, stack = '' } = error instanceof Error ? error : new Error('unknown');
  const line = PLACE.exec(`${message}\n${stack}`)?.[1];
  // The place is told apart.
  const text = message.replace(PLACE_AT_END, '');
  // An open bracket may be found missing behind the last line.
  const lines = source.split('\n').length;
  return {
    message: OF_A_MODULE.test(text) ? `${text}. ${COMMON_JS}` : text,
    line: line === undefined ? undefined : Math.min(Number(line), lines),
  };
}
