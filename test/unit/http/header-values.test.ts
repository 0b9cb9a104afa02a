import { expect } from 'chai';
import {
  isHost,
  isPlainText,
  namesProtectedHeader,
  parseLength,
} from '../../../shared/http/header-values.ts';

describe('isPlainText', () => {
  it('agrees with RFC 9110 section 5.5 without obs-text, for every byte', () => {
    for (let code = 0; code < 0x120; code++) {
      const expected = code === 9 || (code >= 0x20 && code <= 0x7e);
      expect(isPlainText(`a${String.fromCharCode(code)}b`), `character ${code}`).to.equal(expected);
    }
  });
});

describe('isHost', () => {
  for (const host of [
    'localhost',
    'localhost:3000',
    'Vault.Example.com',
    'a_b-c.internal:1',
    '127.0.0.1:65535',
    '[::1]',
    '[::ffff:127.0.0.1]:3000',
  ]) {
    it(`accepts ${host}`, () => expect(isHost(host)).to.equal(true));
  }

  for (const host of [
    '',
    ':3000',
    'localhost:',
    'localhost:0',
    'localhost:65536',
    'localhost:123456',
    'localhost:+80',
    'localhost:80:80',
    'localhost/tokens',
    'localhost?x',
    'localhost#x',
    'user@localhost',
    'user:password@localhost',
    'local host',
    'a,b',
    'local%68ost',
    '[::1',
    '[]',
    '[:',
    '[::1]x',
    '[::1]:',
    '[::1%25eth0]',
    'a'.repeat(262),
  ]) {
    it(`refuses ${host.slice(0, 40)}`, () => expect(isHost(host)).to.equal(false));
  }
});

describe('parseLength', () => {
  it('reads decimal digits only', () => {
    expect(parseLength('0')).to.equal(0);
    expect(parseLength('1048576')).to.equal(1048576);
    expect(parseLength('999999999999999')).to.equal(999999999999999);
  });

  for (const value of ['', '+4', '-4', '4, 4', '0x4', '4e1', '4.0', ' 4', '04', '9'.repeat(16)]) {
    it(`refuses ${JSON.stringify(value)}`, () => expect(parseLength(value)).to.equal(-1));
  }
});

describe('namesProtectedHeader', () => {
  for (const value of ['keep-alive', 'close', 'Keep-Alive', 'upgrade', 'TE, close', '', 'x-mine']) {
    it(`allows ${JSON.stringify(value)}`, () =>
      expect(namesProtectedHeader(value)).to.equal(false));
  }

  for (const value of [
    'content-length',
    'close, Content-Length',
    'Transfer-Encoding',
    'HOST',
    'bt-api-key',
    'keep-alive,\tBT-Proxy-Key',
    'x-forwarded-for',
    'content-encoding',
  ]) {
    it(`finds ${JSON.stringify(value)}`, () => expect(namesProtectedHeader(value)).to.equal(true));
  }
});
