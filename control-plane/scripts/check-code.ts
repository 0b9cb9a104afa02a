/** Compiles customer code in a sandbox host before it is stored; never in this process. */
import { ApiError, fieldError } from '../../shared/errors.ts';
import type { ScriptCheck } from '../../shared/sandbox/script-checker.ts';
import { withLine } from '../../shared/sandbox/script-result.ts';
import type { CodeChecks } from './code-checks.ts';

/** The longest name that npm allows. */
const MODULE_NAME_LENGTH_MAX = 214;

/**
 * Throws 400 with the error at `path` for code that could not run: it does not compile, exports no
 * function, requires a module that is not there. 429 and 503 when it cannot be told now. Takes as long
 * as the code loads and others before it, so it belongs before a transaction.
 */
export async function checkCode(
  codeChecks: CodeChecks,
  tenantId: string,
  code: string,
  path = 'code',
): Promise<void> {
  const checked = await codeChecks.check(tenantId, code).catch(cannotCheck);
  if (checked.kind === 'busy') return cannotCheck();
  const problem = problemOf(checked);
  if (problem !== undefined) throw fieldError(path, problem);
}

function cannotCheck(cause?: unknown): never {
  if (cause instanceof ApiError) throw cause;
  const headers = { 'retry-after': '1' };
  throw new ApiError('unavailable', 'The code could not be checked now; try again', {
    headers,
    cause,
  });
}

function problemOf(checked: Exclude<ScriptCheck, { kind: 'busy' }>): string | undefined {
  switch (checked.kind) {
    case 'ok':
      return undefined;
    case 'syntax':
      return withLine(checked.message, checked.line);
    case 'unknown_module':
      return `The module ${nameOf(checked.module)} is not available`;
    case 'type':
    case 'failed':
      return checked.message;
  }
}

/** A name that code made up at run time may have any length and any characters. */
function nameOf(module: string): string {
  return JSON.stringify(module.slice(0, MODULE_NAME_LENGTH_MAX));
}
