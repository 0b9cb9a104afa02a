/**
 * The commands of README.md and what it says they answer, run one by one as a reader would: placeholders
 * such as `<token id>` are filled with what earlier answers said, `…` in an answer stands for anything.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { JsonObject } from '../support/http-call.ts';

const run = promisify(execFile);
export const ROOT = join(import.meta.dirname, '../..');
export const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

const SHORT = '…';
const STATUS = '\nstatus ';
/** `curl -sS` of a command, so that it tells the status as well. */
const TELL_STATUS = `curl -sS -w '\\nstatus %{http_code}'`;

/** One fenced block. */
interface Block {
  readonly language: string;
  readonly text: string;
}

export function blocksBelow(heading: string): Block[] {
  const section = README.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0];
  if (section === undefined) throw new Error(`README.md has no heading "${heading}"`);
  return Array.from(section.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm), ([, language, text]) => ({
    language: language ?? '',
    text: text ?? '',
  }));
}

/** Each command of a block on its own: lines that begin with one start it. */
export function commandsOf({ text }: Block): string[] {
  return text
    .split(/^(?=curl |node |[A-Z_]+=)/m)
    .map((command) => command.trim())
    .filter((command) => command !== '');
}

/** What a reader has in the terminal and has noted down. */
export class Reader {
  /** In the shell. */
  readonly variables: Record<string, string> = {};
  /** By placeholder, without its brackets. */
  readonly notes: Record<string, string> = {};
  /** Texts of README.md and what they are here, such as addresses. */
  readonly #places: Readonly<Record<string, string>>;

  constructor(places: Readonly<Record<string, string>>) {
    this.#places = places;
  }

  /** The command as the reader types it. */
  fill(command: string): string {
    let filled = command.replace(/<([a-z_]+(?: [A-Za-z_]+)*)>/g, (_, name: string) => {
      const note = this.notes[name];
      if (note === undefined) throw new Error(`README.md asks for <${name}>, not seen so far`);
      return note;
    });
    for (const [text, place] of Object.entries(this.#places)) {
      filled = filled.replaceAll(text, place);
    }
    return filled;
  }

  /** The answer of a `curl` command, which must be a 2xx. */
  async call(command: string): Promise<JsonObject> {
    const filled = this.fill(command);
    const { stdout } = await run('/bin/sh', ['-euc', filled.replaceAll('curl -sS', TELL_STATUS)], {
      env: { PATH: process.env.PATH, ...this.variables },
    });
    const at = stdout.lastIndexOf(STATUS);
    expect(stdout.slice(at + STATUS.length), `${filled}\n${stdout}`).to.match(/^2\d\d$/);
    const text = stdout.slice(0, at);
    return text === '' ? {} : (JSON.parse(text) as JsonObject);
  }
}

/** Holds an answer against a block that shows it. */
export function expectShown(answer: unknown, { text }: Block): void {
  const shown: unknown = JSON.parse(text.replaceAll(`{${SHORT}}`, `"${SHORT}"`));
  expect(shortened(answer, shown)).to.deep.equal(shown);
}

/** The answer with `…` where the README has it. */
function shortened(answer: unknown, shown: unknown): unknown {
  if (shown === SHORT && answer !== undefined) return SHORT;
  if (typeof shown !== 'object' || shown === null || Array.isArray(shown)) return answer;
  if (typeof answer !== 'object' || answer === null) return answer;
  const members = Object.entries(answer).map(([name, value]) => [
    name,
    shortened(value, Reflect.get(shown, name)),
  ]);
  return Object.fromEntries(members);
}
