import { expect } from 'chai';
import {
  readHostMessage,
  readResult,
  readThreadMessage,
} from '../../../shared/sandbox/script-result.ts';

const read = (value: unknown) => readResult('error', JSON.stringify(value));

describe('the end of a run', () => {
  it('takes name, status and detail from the catalogue, never from the script', () => {
    const thrown = {
      name: 'AuthorizationError',
      status: 200,
      detail: 'mine',
      errors: { a: ['b'] },
    };
    expect(read(thrown)).to.deep.equal({
      kind: 'error',
      error: { name: 'AuthorizationError', status: 403, detail: 'Forbidden', errors: { a: ['b'] } },
    });
  });

  for (const name of ['Error', 'toString', '__proto__', 'constructor', '', 5, null]) {
    it(`is a runtime error for the name ${JSON.stringify(name)}`, () => {
      const ended = read({ name, errors: { error: ['x'] } });
      expect(ended.kind === 'error' && ended.error.name).to.equal('ReactorRuntimeError');
    });
  }

  for (const text of [
    '',
    'null',
    '[]',
    '"x"',
    '{"name":"BadRequestError","errors":[1]}',
    '{"errors":{"a":1}}',
  ]) {
    it(`is an error with lists of strings whatever the text: ${text}`, () => {
      const ended = readResult('error', text);
      if (ended.kind !== 'error') throw new Error(ended.kind);
      expect(
        Object.values(ended.error.errors)
          .flat()
          .every((item) => typeof item === 'string'),
      ).to.equal(true);
    });
  }

  it('keeps a custom response only with a status and headers that HTTP has', () => {
    const custom = (rest: object) => read({ name: 'CustomHttpResponseError', ...rest }).kind;
    expect(custom({ status: 204 })).to.equal('custom_response');
    expect(custom({ status: 200, headers: { 'x-a': 1 } })).to.equal('custom_response');
    for (const status of [99, 600, 200.5, '200', null, undefined]) {
      expect(custom({ status }), String(status)).to.equal('error');
    }
    for (const headers of [
      { 'a b': 'c' },
      { a: 'b\r\nc: d' },
      { a: '\u20ac' },
      { a: ['b'] },
      { '': 'a' },
    ]) {
      expect(custom({ status: 200, headers })).to.equal('error');
    }
    const many = Object.fromEntries(Array.from({ length: 101 }, (_item, i) => [`x-${i}`, '1']));
    expect(custom({ status: 200, headers: many })).to.equal('error');
  });

  it('passes the body of a custom response on as the text that it is, and never parses it', () => {
    const head = '{"name":"CustomHttpResponseError","status":200}';
    for (const body of ['{"a":1}', '"text"', `[${'{},'.repeat(1e6)}{}]`, '['.repeat(1e6)]) {
      const ended = readResult('error', `${head}\n${body}`);
      expect(ended.kind === 'custom_response' && ended.body === body).to.equal(true);
    }
    const ended = readResult('error', head);
    expect(ended.kind === 'custom_response' && ended.body).to.equal(undefined);
  });

  it('is not parsed when it has more members than any error, or is longer', () => {
    const members = Array.from({ length: 1e5 }, (_item, i) => `"${i}":1`).join();
    const long = JSON.stringify('x'.repeat(1024 * 1024));
    for (const text of [`{"errors":{${members}}}`, `{"errors":{"a":[${long}]}}`]) {
      const ended = readResult('error', text);
      expect(ended.kind === 'error' && ended.error.errors).to.deep.equal({
        error: ['The error could not be read.'],
      });
    }
  });

  it('has its entries and messages cut, whatever the prelude let through', () => {
    const entries = Array.from({ length: 200 }, (_item, i) => [`${i}`, Array(200).fill('')]);
    const ended = read({ name: 'Error', errors: Object.fromEntries(entries) });
    if (ended.kind !== 'error') throw new Error(ended.kind);
    expect(Object.values(ended.error.errors).map(({ length }) => length)).to.deep.equal(
      Array(100).fill(100),
    );
    const long = read({ name: 'Error', errors: { ['n'.repeat(2000)]: ['m'.repeat(2000)] } });
    const [[name, messages] = []] = long.kind === 'error' ? Object.entries(long.error.errors) : [];
    expect([name?.length, messages?.[0]?.length]).to.deep.equal([1024, 1024]);
  });

  it('says which time was over: that of the run, or what a run may compute', () => {
    const run = { kind: 'timeout', limit: 'run', limit_ms: 210_000 };
    expect(readResult('timeout', '', 210_000)).to.deep.equal(run);
    const compute = { kind: 'timeout', limit: 'compute', limit_ms: 10_000 };
    expect(readResult('compute_timeout', '', 210_000)).to.deep.equal(compute);
  });

  it('is one of a result that is too large, whatever the host let through', () => {
    const text = JSON.stringify('x'.repeat(5 * 1024 * 1024));
    expect(readResult('ok', text)).to.deep.equal({ kind: 'result_too_large' });
  });
});

describe("a message on a host's own pipe", () => {
  for (const header of [
    ...[null, 5, 'ready', [], {}, { kind: 'run' }, { kind: 'busy', ids: 5 }],
    ...[{ kind: 'result', id: 1, ending: 'ok' }],
  ]) {
    it(`is none when it is ${JSON.stringify(header)}`, () => {
      expect(readHostMessage(header)).to.equal(undefined);
    });
  }

  it('names runs by integers only', () => {
    const ids = [1, '2', null, 3.5, 4];
    expect(readHostMessage({ kind: 'busy', ids })).to.deep.equal({ kind: 'busy', ids: [1, 4] });
  });
});

describe('a message of a thread', () => {
  for (const header of [
    ...[null, 5, 'result', [], {}, { kind: 'run', id: 1 }, { kind: 'ready' }],
    ...[
      { kind: 'busy', ids: [] },
      { kind: 'result', id: '1', ending: 'ok' },
      { kind: 'result', id: 1, ending: 'constructor' },
      { kind: 'unknown_script', id: '1' },
      { kind: 'call', id: 1, call: 1, service: 'constructor' },
      { kind: 'call', id: 1, call: 0, service: 'fetch' },
      { kind: 'call', id: 1, call: 1.5, service: 'fetch' },
      { kind: 'call', id: '1', call: 1, service: 'fetch' },
      { kind: 'cancel', id: 1, call: '1' },
    ],
  ]) {
    it(`is none when it is ${JSON.stringify(header)}`, () => {
      expect(readThreadMessage(header)).to.equal(undefined);
    });
  }

  it('has its console lines checked one by one', () => {
    const console = [{ level: 'log', text: 'a' }, { level: 1, text: 'b' }, null, 'c'];
    expect(readThreadMessage({ kind: 'result', id: 1, ending: 'ok', console })).to.deep.equal({
      ...{ kind: 'result', id: 1, ending: 'ok', console: [{ level: 'log', text: 'a' }] },
    });
  });

  it('has 1,024 console lines at most', () => {
    const console = Array.from({ length: 5000 }, () => ({ level: 'log', text: '' }));
    const message = readThreadMessage({ kind: 'result', id: 1, ending: 'ok', console });
    expect(message?.kind === 'result' && message.console.length).to.equal(1024);
  });
});
