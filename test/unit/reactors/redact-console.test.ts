/** A console that is shown to whoever debugs a reactor, without the values that were detokenized. */
import { expect } from 'chai';
import { Secrets } from '../../../data-plane/reactors/redact-console.ts';

const NUMBER = '4242424242424242';

function redact(text: string, ...values: unknown[]): string {
  const secrets = new Secrets();
  for (const value of values) secrets.add(value);
  return secrets.redact([{ level: 'log', text }])[0]?.text ?? '';
}

describe('a redacted console', () => {
  it('shows no value, wherever it stands', () => {
    expect(redact(`card ${NUMBER}, again:${NUMBER}`, NUMBER)).to.equal(
      'card [redacted], again:[redacted]',
    );
    expect(redact(`{"number":"${NUMBER}","a":1}`, { deep: [{ number: NUMBER }] })).to.equal(
      '{"number":"[redacted]","a":1}',
    );
    expect(redact('pin 20304', 20304)).to.equal('pin [redacted]');
  });

  it('shows no value as JSON prints it, in groups, or without its separators', () => {
    expect(redact('"say \\"hi\\"\\n"', 'say "hi"\n')).to.equal('"[redacted]"');
    expect(redact('4242 4242 4242 4242 and 4242-4242-4242-4242', NUMBER)).to.equal(
      '[redacted] and [redacted]',
    );
    expect(redact('123456789', '123-45-6789')).to.equal('[redacted]');
    expect(redact('a.*b', 'a.*b')).to.equal('[redacted]');
    expect(redact('axxb', 'a.*b')).to.equal('axxb');
  });

  it('keeps what is too short to be told from other text', () => {
    expect(redact('a cat sat', 'cat', 1, true, null, '')).to.equal('a cat sat');
  });

  it('takes the longest of values that hold each other', () => {
    expect(redact('secret-longer secret', 'secret', 'secret-longer')).to.equal(
      '[redacted] [redacted]',
    );
  });

  it('knows what was put into the arguments, changed by filters or not', () => {
    const secrets = new Secrets();
    const before = { a: '{{ id | upcase }}', b: 'plain text', c: [{ d: '{{ id }}' }] };
    const after = { a: 'JANE DOE', b: 'plain text', c: [{ d: { name: 'jane doe' } }] };
    secrets.addChanges(before, after);
    const [line] = secrets.redact([{ level: 'log', text: 'JANE DOE, jane doe, plain text' }]);
    expect(line?.text).to.equal('[redacted], [redacted], plain text');
  });

  it('shows nothing at all when there is too much to look for', () => {
    const many = Array.from({ length: 1_000_000 }, (_, index) => `value ${index}`);
    expect(redact('anything', many)).to.equal('[redacted]');
  });

  it('shows nothing at all when the values are long, and no error quotes them', () => {
    for (const values of [
      ['a'.repeat(5e6)],
      Array.from({ length: 200 }, (_item, i) => 'b'.repeat(100 + i)),
    ]) {
      expect(redact('anything', ...values)).to.equal('[redacted]');
    }
    expect(redact(`${'c'.repeat(16_000)} x`, 'c'.repeat(16_000))).to.equal('[redacted] x');
  });

  it('is bounded, whatever a host sends', () => {
    const secrets = new Secrets();
    const lines = Array.from({ length: 100 }, () => ({ level: 'log', text: 'x'.repeat(10_000) }));
    const length = secrets.redact(lines).reduce((sum, { text }) => sum + text.length, 0);
    expect(length).to.equal(64 * 1024);
  });
});
