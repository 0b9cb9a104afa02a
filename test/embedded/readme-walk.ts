/**
 * The commands of README.md and what it says they answer, run one by one as a reader would: variables
 * keep what earlier commands took out of answers, `…` in an answer stands for anything.
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

/** The README's own function, which shows an answer on stderr and prints one member of it. */
const TAKE = /^take\(\) \{\n[\s\S]*?^\}$/m.exec(README)?.[0] ?? '';
/** A command whose output goes into a variable. */
const ASSIGNMENT = /^([A-Z_]+)=\$\(curl /;

/** Calls the API; false for what only prepares a call, such as a key that is pasted. */
export const isCall = (command: string): boolean =>
  command.startsWith('curl ') || ASSIGNMENT.test(command);

/** Each command of a block on its own: lines that begin with one start it. */
export function commandsOf({ text }: Block): string[] {
  return text
    .split(/^(?=curl |node |take\(\) |[A-Z_]+=)/m)
    .map((command) => command.trim())
    .filter((command) => command !== '');
}

/** What a reader has in the terminal. */
export class Reader {
  /** In the shell. */
  readonly variables: Record<string, string> = {};
  /** Texts of README.md and what they are here, such as addresses. */
  readonly #places: Readonly<Record<string, string>>;

  constructor(places: Readonly<Record<string, string>>) {
    this.#places = places;
  }

  /** The command as the reader types it. */
  fill(command: string): string {
    let filled = command;
    for (const [text, place] of Object.entries(this.#places)) {
      filled = filled.replaceAll(text, place);
    }
    return filled;
  }

  /** The answer of a `curl` command, which must be a 2xx. What it takes out of it is a variable then. */
  async call(command: string): Promise<JsonObject> {
    const filled = this.fill(command);
    const [, name] = ASSIGNMENT.exec(filled) ?? [];
    const print = name === undefined ? [] : [`printf %s "$${name}"`];
    const script = [TAKE, filled.replaceAll('curl -sS', TELL_STATUS), ...print].join('\n');
    const { stdout, stderr } = await run('/bin/sh', ['-euc', script], {
      env: { PATH: process.env.PATH, ...this.variables },
    });
    const shown = (name === undefined ? stdout : stderr).trimEnd();
    const at = shown.lastIndexOf(STATUS);
    expect(shown.slice(at + STATUS.length), `${filled}\n${shown}`).to.match(/^2\d\d$/);
    if (name !== undefined) {
      expect(stdout, filled).not.to.equal('');
      this.variables[name] = stdout;
    }
    const text = shown.slice(0, at);
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
