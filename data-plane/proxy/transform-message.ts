/**
 * A message as a transform sees it, and what it made of it: JSON as a value, forms as an object, any
 * other body as text, no body as null (facts 10.3, design section 12).
 */
import { ApiError } from '../../shared/errors.ts';
import { JSON_DEPTH_MAX, scanPassedJson } from '../../shared/json-scan.ts';
import { parseJson } from '../../shared/json-text.ts';
import { membersOf } from '../reactors/returned.ts';
import { type BodyText, bodyKind, readBodyText, writeBodyText } from './body-text.ts';
import { runtimeProblem } from './transform-failure.ts';
import { formObject, printForm } from './transform-form.ts';
import { lastHeader, readHeaders } from './transform-headers.ts';

export interface Message {
  /** Empty: none. */
  readonly body: Buffer;
  /** Flat, as they go out when the transform returns none. */
  readonly headers: readonly string[];
}

/** What the transform gets for a body, as JSON text, and what it takes to make it a body again. */
export interface SeenBody extends Pick<BodyText, 'isBytes'> {
  readonly json: string;
}

/** Results are passed on, never walked: this only bounds the recursion of our own scan. */
export const PASSED_DEPTH_MAX = 8 * JSON_DEPTH_MAX;

const RESULT_NAMES = ['"body"', '"headers"', '"raw"'];
const NO_BODY: SeenBody = { json: 'null', isBytes: false };
const NOTHING_RETURNED = 'The transform must return an object with body, headers or both.';

/** As text, or for a form as an object. */
export function seenText(body: Buffer, contentType: string | undefined): SeenBody {
  if (body.length === 0) return NO_BODY;
  const { text, isBytes } = readBodyText(body);
  const form = bodyKind(contentType) === 'form' && !isBytes ? formObject(text) : undefined;
  return { json: JSON.stringify(form ?? text), isBytes };
}

/** As the value that a JSON text is. The text must have been checked. */
export function seenJson(text: string): SeenBody {
  return { json: text, isBytes: false };
}

/**
 * The message that a transform returned: what is missing stays as it was. Throws the 500 of a failing
 * script for a result that is no message.
 */
export function readMessage(returned: string, original: Message, seen: SeenBody): Message {
  const members = resultMembers(returned);
  const headersText = members.get('headers') ?? 'null';
  const headers =
    headersText === 'null' ? [...original.headers] : readHeaders(parseResult(headersText));
  const json = members.get('body');
  if (json === undefined || (json === 'null' && seen.json === 'null')) {
    return { body: original.body, headers };
  }
  if (json === 'null') return { body: Buffer.alloc(0), headers };
  if (json.startsWith('"'))
    return { body: printText(json, { ...original, headers }, seen), headers };
  return printValue(json, headers);
}

/** As it is; but JSON that is a text and goes on as JSON keeps its quotes when it is returned as it was seen. */
function printText(json: string, { body, headers }: Message, seen: SeenBody): Buffer {
  const text = String(JSON.parse(json));
  const isSame = seen.json.startsWith('"') && JSON.parse(seen.json) === text;
  const isJson = bodyKind(lastHeader(headers, 'content-type')) === 'json';
  return isSame && isJson ? body : writeBodyText(text, seen);
}

/** A value that is no text: a form where the headers say so, JSON else. */
function printValue(json: string, headers: string[]): Message {
  const contentType = lastHeader(headers, 'content-type');
  if (contentType === undefined) {
    return { body: Buffer.from(json), headers: [...headers, 'content-type', 'application/json'] };
  }
  const isForm = bodyKind(contentType) === 'form' && json.startsWith('{');
  return { body: Buffer.from(isForm ? printForm(parseResult(json) as object) : json), headers };
}

/** With `body` and `headers`; older code returns them inside `raw`. */
function resultMembers(returned: string): ReadonlyMap<string, string> {
  checkResult(returned);
  const members = objectMembers(returned);
  if (members.has('body') || members.has('headers')) return members;
  const raw = members.get('raw');
  const inner = raw === undefined ? members : objectMembers(raw);
  if (!inner.has('body') && !inner.has('headers')) throw runtimeProblem(NOTHING_RETURNED);
  return inner;
}

function objectMembers(text: string): ReadonlyMap<string, string> {
  if (!text.startsWith('{')) throw runtimeProblem(NOTHING_RETURNED);
  return membersOf(text, RESULT_NAMES);
}

function checkResult(text: string): void {
  try {
    scanPassedJson(Buffer.from(text), PASSED_DEPTH_MAX);
  } catch (error) {
    throw unreadable(error);
  }
}

/** Only headers and forms: of other results, nobody's requests wait for half a million members. */
function parseResult(text: string): unknown {
  try {
    return parseJson(Buffer.from(text));
  } catch (error) {
    throw unreadable(error);
  }
}

function unreadable(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  return runtimeProblem(`The result of the transform cannot be passed on. ${error.message}`);
}
