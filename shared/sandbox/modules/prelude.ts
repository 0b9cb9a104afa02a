/**
 * The code that runs first in every context, put together from the files of host/prelude/.
 * One script of small functions: V8 compiles a module only when a context first uses it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CALL_LIMITS,
  CALL_REQUEST_BYTES_MAX,
  CONSOLE_BYTES_MAX,
  CONSOLE_LINES_MAX,
  ERROR_ENTRIES_MAX,
  MESSAGE_CHARACTERS_MAX,
  RESULT_BYTES_MAX,
  TIMERS_MAX,
} from '../protocol.ts';

const FOLDER = join(import.meta.dirname, '../host/prelude');
const ENTRY = 'start';

const LIMITS = {
  result_bytes_max: RESULT_BYTES_MAX,
  console_bytes_max: CONSOLE_BYTES_MAX,
  console_lines_max: CONSOLE_LINES_MAX,
  timers_max: TIMERS_MAX,
  calls: CALL_LIMITS,
  call_request_bytes_max: CALL_REQUEST_BYTES_MAX,
  message_characters_max: MESSAGE_CHARACTERS_MAX,
  error_entries_max: ERROR_ENTRIES_MAX,
};

/**
 * Source of a script whose value is `enter(operation, …)`. `native`, `internal` and `limits` are seen by
 * the modules of the prelude and by nothing else.
 */
export function preludeSource(): string {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.cjs'));
  const modules = files.map((file) => {
    const text = readFileSync(join(FOLDER, file), 'utf8');
    return `${JSON.stringify(file.slice(0, -4))}(exports, require, module) {${text}\n}`;
  });
  return `(function () {
'use strict';
let native;
const internal = { __proto__: null };
const limits = { __proto__: null, ...${JSON.stringify(LIMITS)} };
const factories = { __proto__: null, ${modules.join(',\n')} };
const loaded = { __proto__: null };
function require(name) {
  const known = loaded[name];
  if (known !== undefined) return known.exports;
  const module = (loaded[name] = { exports: {} });
  let done = false;
  try {
    factories[name](module.exports, require, module);
    done = true;
  } finally {
    // A script may use it first where the stack ends: the next use loads it anew.
    if (!done) loaded[name] = undefined;
  }
  return module.exports;
}
return require(${JSON.stringify(ENTRY)});
})()`;
}
