import { expect } from 'chai';
import { readHostMessage, readResult } from '../../../shared/sandbox/script-result.ts';

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
  });
});

describe('a message of a host', () => {
  for (const header of [
    ...[null, 5, 'ready', [], {}, { kind: 'run' }, { kind: 'busy', ids: 5 }],
    ...[
      { kind: 'result', id: '1', ending: 'ok' },
      { kind: 'result', id: 1, ending: 'constructor' },
    ],
  ]) {
    it(`is none when it is ${JSON.stringify(header)}`, () => {
      expect(readHostMessage(header)).to.equal(undefined);
    });
  }

  it('has its console lines checked one by one', () => {
    const console = [{ level: 'log', text: 'a' }, { level: 1, text: 'b' }, null, 'c'];
    expect(readHostMessage({ kind: 'result', id: 1, ending: 'ok', console })).to.deep.equal({
      ...{ kind: 'result', id: 1, ending: 'ok', console: [{ level: 'log', text: 'a' }] },
    });
  });
});
