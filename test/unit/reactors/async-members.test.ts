import { expect } from 'chai';
import { readAsyncMembers, readAsyncTimeout } from '../../../data-plane/reactors/async-members.ts';
import { ApiError } from '../../../shared/errors.ts';
import { allowList } from '../egress/destinations.ts';

describe('the members of an asynchronous call', () => {
  const url = 'https://shop.example/hook?x=1';
  const errorsOf = (body: object, allow = ''): string[] => {
    try {
      readAsyncMembers(body, allowList(allow));
    } catch (error) {
      if (error instanceof ApiError && error.status === 400) return Object.keys(error.errors ?? {});
      throw error;
    }
    return [];
  };

  it('make a call asynchronous in either spelling, and only a callback does', () => {
    const expected = { callback_url: url, timeout_ms: 10_000 };
    for (const body of [{ callback_url: url }, { callbackUrl: url }]) {
      expect(readAsyncMembers(body, [])).to.deep.equal(expected);
      expect(readAsyncMembers({ ...body, timeout_ms: null }, [])).to.deep.equal(expected);
      for (const name of ['timeout_ms', 'timeoutMs']) {
        for (const timeout of [10_000, 12_345, 210_000]) {
          const members = readAsyncMembers({ ...body, [name]: timeout }, []);
          expect(members?.timeout_ms).to.equal(timeout);
        }
      }
    }
    // Ignored when synchronous, whatever it is.
    for (const timeout_ms of [1, -1, '10000', 1e99, {}, null]) {
      expect(readAsyncMembers({ timeout_ms }, [])).to.equal(undefined);
      expect(readAsyncMembers({ timeout_ms, callback_url: null }, [])).to.equal(undefined);
    }
    const inherited = Object.create({ callback_url: url });
    expect(readAsyncMembers(inherited, [])).to.equal(undefined);
  });

  it('refuse times out of bounds, by the name that was used', () => {
    for (const timeout of [9_999, 210_001, '10000', -1, 1e99, 10_000.5, true, [10_000], 0]) {
      expect(errorsOf({ callback_url: url, timeout_ms: timeout })).to.deep.equal(['timeout_ms']);
      expect(errorsOf({ callback_url: url, timeoutMs: timeout })).to.deep.equal(['timeoutMs']);
      expect(() => readAsyncTimeout({ timeout_ms: timeout })).to.throw();
    }
    expect(readAsyncTimeout({})).to.equal(210_000);
    expect(readAsyncTimeout({ timeoutMs: 20_000 })).to.equal(20_000);
  });

  it('refuse addresses that the egress guard never reaches', () => {
    const addresses: unknown[] = [
      ...['', 'http://shop.example/', 'ftp://shop.example/', '//shop.example/', 'shop.example'],
      ...['https://127.0.0.1/', 'https://[::1]/', 'https://2130706433/', 'https://8.8.8.8/'],
      ...['https://localhost/', 'https://foo.localhost/', 'https://169.254.169.254/latest'],
      ...['https://metadata.google.internal/', 'https://a:b@shop.example/', 'javascript:alert(1)'],
      ...['https://shop.example/#part', 'https://shop.example/a b'],
      ...[`https://shop.example/${'a'.repeat(3_000)}`, 'https://shop.example:22/', 1, {}, [url]],
    ];
    for (const address of addresses) {
      expect(errorsOf({ callback_url: address }), String(address)).to.deep.equal(['callback_url']);
      expect(errorsOf({ callbackUrl: address }), String(address)).to.deep.equal(['callbackUrl']);
    }
    expect(errorsOf({ callback_url: `https://shop.example/${'a'.repeat(2_027)}` })).to.deep.equal(
      [],
    );
    expect(errorsOf({ callback_url: `https://shop.example/${'a'.repeat(2_028)}` })).to.deep.equal([
      'callback_url',
    ]);
    expect(errorsOf({ callback_url: 'http://127.0.0.1:8080/' }, '127.0.0.0/8')).to.deep.equal([]);
    expect(errorsOf({ callback_url: 'http://10.0.0.1/' }, '127.0.0.0/8')).to.have.length(1);
  });
});
