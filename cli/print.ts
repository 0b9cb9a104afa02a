/** How a command answers: for a person, or with `--json` for a program. */

export interface JsonOption {
  readonly json?: true;
}

/** Writes `value` as one line of JSON with `--json`, else the lines of text. */
export function print(options: JsonOption, value: unknown, lines: string[]): void {
  const text = options.json === true ? JSON.stringify(value) : lines.join('\n');
  if (text !== '') process.stdout.write(`${text}\n`);
}
