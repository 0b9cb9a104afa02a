/** A CustomHttpResponseError as an answer: verbatim, but for what is not the script's to say. */
import { expect } from 'chai';
import { customAnswer } from '../../../data-plane/reactors/custom-response.ts';

const answerTo = (headers: Record<string, string>, body: unknown = { a: 1 }, status = 418) =>
  customAnswer({ status, headers, body: JSON.stringify(body) });

describe('a custom response', () => {
  it('is its status, headers and body', () => {
    expect(answerTo({ 'X-Reason': 'short and stout', Location: '/x' })).to.deep.equal({
      status: 418,
      headers: ['X-Reason', 'short and stout', 'Location', '/x'],
      body: '{"a":1}',
    });
    const empty = { status: 418, headers: {}, body: undefined };
    expect(customAnswer(empty)).to.deep.equal({ status: 418, headers: [] });
  });

  it('has its text as it is under a content type of its own, everything else as JSON', () => {
    const html = { 'Content-Type': 'text/html' };
    expect(answerTo(html, '<p>')).to.deep.include({
      headers: ['content-type', 'text/html'],
      body: '<p>',
    });
    expect(answerTo(html, { a: 1 }).body).to.equal('{"a":1}');
    expect(answerTo({}, 'text').body).to.equal('"text"');
    for (const type of ['application/json', 'application/vnd.x+json; charset=utf-8']) {
      expect(answerTo({ 'content-type': type }, 'text').body).to.equal('"text"');
    }
  });

  it('cannot set the framing, our own headers, or what speaks for all tenants', () => {
    const names = [
      ...['Content-Length', 'Transfer-Encoding', 'Connection', 'Keep-Alive', 'Upgrade', 'TE'],
      ...['Trailer', 'Proxy-Connection', 'BT-TRACE-ID', 'bt-anything', 'Set-Cookie', 'Date'],
      ...['Access-Control-Allow-Origin', 'Strict-Transport-Security', 'Clear-Site-Data'],
      ...['Cache-Control', 'Content-Encoding', 'Service-Worker-Allowed'],
    ];
    const headers = Object.fromEntries(names.map((name) => [name, '1']));
    expect(answerTo(headers).headers).to.deep.equal([]);
  });

  it('has no body under a status that has none', () => {
    for (const status of [204, 205, 304]) {
      expect(answerTo({ 'content-type': 'text/plain' }, 'x', status).body).to.equal(undefined);
    }
  });
});
