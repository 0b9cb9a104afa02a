/** docs/reactors.md against the code: a number or a name there that is not true any more fails here. */
import { expect } from 'chai';
import { REACTOR_DEPTH_MAX } from '../../../data-plane/reactors/script-depth.ts';
import { Code } from '../../../shared/api/scripts.ts';
import * as protocol from '../../../shared/sandbox/protocol.ts';
import { SCRIPT_FETCH_LIMITS } from '../../../shared/sandbox/script-fetch.ts';
import { REDIRECTS_MAX } from '../../../shared/sandbox/script-fetch-redirect.ts';
import { REQUEST_BODY_BYTES_MAX } from '../../../shared/sandbox/script-fetch-request.ts';
import { readResult } from '../../../shared/sandbox/script-result.ts';
import { SHARE_LIMITS } from '../../../shared/sandbox/tenant-shares.ts';
import { DETOKENIZED_TOKENS_MAX } from '../../../shared/tokens/detokenize.ts';
import {
  bytes,
  constantIn,
  count,
  DOCUMENT_LINES_MAX,
  read,
  seconds,
  tableBelow,
} from '../documented-limits.ts';

const DOCUMENT = read('docs/reactors.md');
const inSandbox = (file: string, name: string): number =>
  constantIn(`shared/sandbox/${file}.ts`, name);
const inAnswerRoom = (name: string): number =>
  constantIn('data-plane/reactors/answer-room.ts', name);

const LIMITS = {
  'characters of the code': count(Number(Reflect.get(Code, 'maxLength'))),
  'distinct tokens of one call': count(DETOKENIZED_TOKENS_MAX),
  'time of a run, waiting included': seconds(protocol.DEADLINE_MS_DEFAULT),
  'time a run may compute in all': seconds(protocol.COMPUTE_MS_MAX),
  "memory of a script version's isolate": `${protocol.ISOLATE_MEMORY_MB_MAX} MiB`,
  'memory of all isolates of a thread whose runs wait': bytes(
    inSandbox('host/isolate-thread', 'WAITING_BYTES_MAX'),
  ),
  'arguments and configuration, as JSON': bytes(protocol.REQUEST_BYTES_MAX),
  'result, as JSON': bytes(protocol.RESULT_BYTES_MAX),
  'console of a run': bytes(protocol.CONSOLE_BYTES_MAX),
  'timers that wait at the same time': count(protocol.TIMERS_MAX),
  'fetches of a run': count(protocol.FETCHES_MAX),
  'fetches of a run at the same time': count(protocol.FETCHES_IN_FLIGHT_MAX),
  'calls of `req.bt` in a run': count(protocol.BT_CALLS_MAX),
  'calls of `req.bt` at the same time': count(protocol.BT_CALLS_IN_FLIGHT_MAX),
  'reactors that call each other through `req.bt`': `${REACTOR_DEPTH_MAX} deep`,
  'characters of an error message': count(protocol.MESSAGE_CHARACTERS_MAX),
  'entries of `errors`, and of each list in it': count(protocol.ERROR_ENTRIES_MAX),
  "body of a fetch's request": bytes(REQUEST_BODY_BYTES_MAX),
  'body of a response, unpacked': bytes(SCRIPT_FETCH_LIMITS.responseBytesMax),
  'redirects of a fetch': count(REDIRECTS_MAX),
  'until a response begins': seconds(SCRIPT_FETCH_LIMITS.headersMs),
  'silence within a response': seconds(SCRIPT_FETCH_LIMITS.silenceMs),
  'a fetch in all': seconds(SCRIPT_FETCH_LIMITS.totalMs),
  'fetches of a tenant at the same time': count(SCRIPT_FETCH_LIMITS.tenantRequestsMax),
  'fetches of a tenant that wait': count(SCRIPT_FETCH_LIMITS.tenantWaitingMax),
  'responses held for a tenant': bytes(SCRIPT_FETCH_LIMITS.tenantBytesMax),
  'runs of a tenant that compute': count(SHARE_LIMITS.tenant_running_max),
  'runs of a tenant, those that wait for calls out included': count(
    SHARE_LIMITS.tenant_started_max,
  ),
  'runs of a tenant that wait': count(SHARE_LIMITS.tenant_waiting_max),
  'runs of the machine': count(SHARE_LIMITS.machine_max),
  'arguments and configuration of the runs of a tenant': bytes(SHARE_LIMITS.tenant_bytes_max),
  'the same of the machine': bytes(SHARE_LIMITS.machine_bytes_max),
  'console lines of a run': count(protocol.CONSOLE_LINES_MAX),
  'an error that is thrown, as JSON': bytes(protocol.ERROR_CHARACTERS_MAX),
  'headers of a `CustomHttpResponseError`': count(protocol.CUSTOM_HEADERS_MAX),
  'time to load code when it is saved': seconds(inSandbox('script-checker', 'LOAD_MS_MAX')),
  'memory of a sandbox host': bytes(inSandbox('host-memory', 'RSS_BYTES_MIN')),
  [`answers over ${bytes(inAnswerRoom('LARGE_BYTES'))} that a data plane keeps for keys of a tenant, in a day`]:
    bytes(inAnswerRoom('BYTES_MAX')),
  [`sandbox hosts that scripts of a tenant end in ${seconds(inSandbox('quarantine', 'TENANT_WHILE_MS'))}`]:
    count(inSandbox('quarantine', 'TENANT_OFFENCES_MAX')),
};

describe('docs/reactors.md', () => {
  it('has every limit with the number that the code has', () => {
    const documented = tableBelow(DOCUMENT, 'Limits').map(([name, value]) => [name, value]);
    expect(documented).to.deep.equal(Object.entries(LIMITS));
  });

  it('has every error class with the status and the detail that it is answered with', () => {
    const source = read('shared/sandbox/host/prelude/reactor-errors.cjs');
    const classes = Array.from(source.matchAll(/^ {2}(\w+Error): \[/gm), ([, name]) => name);
    const rows = tableBelow(DOCUMENT, 'Errors').map(([name = '', ...rest]) => [
      name.replaceAll('`', ''),
      ...rest,
    ]);
    expect(rows.map(([name]) => name)).to.have.members(classes);
    for (const [name, status, detail] of rows) {
      const result = readResult('error', JSON.stringify({ name, errors: {} }));
      const error = result.kind === 'error' ? result.error : undefined;
      expect([String(error?.status), error?.detail], name).to.deep.equal([status, detail]);
    }
  });

  it('names every global that the sandbox adds', () => {
    const source = read('shared/sandbox/host/prelude/start.cjs');
    const table = source.split('const GLOBALS = {')[1]?.split('\n};')[0] ?? '';
    const lists = table.replaceAll(/^ {2}['\w-]+:/gm, '');
    const names = Array.from(lists.matchAll(/'(\w+)'/g), ([, name]) => name);
    const section = DOCUMENT.split('## What is inside\n')[1]?.split('\n## ')[0] ?? '';
    expect(names.length).to.be.above(20);
    expect(names.filter((name) => !section.includes(`\`${name}\``))).to.deep.equal([]);
  });

  it('stays short', () => {
    expect(DOCUMENT.trimEnd().split('\n')).to.have.length.at.most(DOCUMENT_LINES_MAX);
  });
});
