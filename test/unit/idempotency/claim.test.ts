import { createSecretKey, randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { TenantKeys } from '../../../shared/crypto/data-keys.ts';
import { open as openSealed } from '../../../shared/crypto/envelope.ts';
import { ApiError } from '../../../shared/errors.ts';
import {
  type IdempotencyClaim,
  idempotencyScope,
  readIdempotencyKey,
  type ScopeParts,
} from '../../../shared/idempotency/claim.ts';
import {
  createdAtIndex,
  openAnswer,
  sealAnswer,
  writeEffectTime,
} from '../../../shared/idempotency/kept-answer.ts';

const POST = { method: 'POST' } as const;

describe('an idempotency key', () => {
  it('has 1 to 255 visible characters', () => {
    for (const key of ['x', 'k'.repeat(255), '!~"\\{}', '00000000-0000-4000-8000-000000000000']) {
      expect(readIdempotencyKey(POST, key)).to.equal(key);
    }
    for (const key of ['', 'k'.repeat(256), 'a b', 'a\tb', 'a\0', 'ä', ' a', 'a, a', '\x7f']) {
      expect(() => readIdempotencyKey(POST, key), JSON.stringify(key))
        .to.throw(ApiError)
        .with.property('status', 400);
    }
  });
  it('means nothing where there is no effect', () => {
    expect(readIdempotencyKey({ method: 'GET' }, '')).to.equal(undefined);
    expect(readIdempotencyKey({ method: 'DELETE' }, 'key')).to.equal(undefined);
    expect(readIdempotencyKey({ ...POST, safe: true }, 'key')).to.equal(undefined);
    expect(readIdempotencyKey({ ...POST, safe: true }, '')).to.equal(undefined);
  });
});

describe('the scope of an idempotency key', () => {
  const search = createSecretKey(randomBytes(32));
  const parts: ScopeParts = {
    application_id: 'app',
    operation: { method: 'PATCH', path: '/tokens/{id}' },
    params: ['a'],
    key: 'b',
  };
  const scope = (over: Partial<ScopeParts>, key = search) =>
    idempotencyScope(key, { ...parts, ...over });

  it('is the same for the same request, and a UUID as Postgres writes it', () => {
    expect(scope({})).to.equal(scope({}));
    expect(scope({})).to.match(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });
  it('is another one for every other request', () => {
    const put = { method: 'PUT', path: '/tokens/{id}' } as const;
    const other = { method: 'PATCH', path: '/proxies/{id}' } as const;
    const all = [
      scope({}),
      scope({ application_id: 'app2' }),
      scope({ operation: put }),
      scope({ operation: other }),
      scope({ params: ['b'] }),
      scope({ key: 'c' }),
      scope({}, createSecretKey(randomBytes(32))),
    ];
    expect(new Set(all).size).to.equal(all.length);
  });
  it('cannot be made by moving characters from one part to the next', () => {
    const all = [
      scope({ params: ['a'], key: 'b' }),
      scope({ params: [], key: 'ab' }),
      scope({ params: ['ab'], key: '' }),
      scope({ params: ['a', 'b'], key: '' }),
      scope({ params: ['a","b'], key: '' }),
      scope({ params: ['a\0b'], key: '' }),
      scope({ params: [], key: 'a","b' }),
      scope({ application_id: 'app","PATCH', params: ['a'] }),
    ];
    expect(new Set(all).size).to.equal(all.length);
  });
});

describe('a kept answer', () => {
  const key = createSecretKey(randomBytes(32));
  const keys: TenantKeys = {
    current: { version: 1, key },
    versions: new Map([[1, key]]),
    fingerprint: key,
    search: key,
  };
  const claim: IdempotencyClaim = { tenant_id: 'tenant', scope: randomUUID(), keys };
  const dataKeys = {
    open: async (_: string, sealed: Buffer, label: Buffer) => openSealed(key, sealed, label),
  };
  const openIt = (sealed: Buffer, by = claim, at: number | null = null) =>
    openAnswer(dataKeys, by, sealed, at);

  it('opens as what it was, without a body too', async () => {
    const rights = [{ permission: 'token:create', container: '/', transform: 'mask' }] as const;
    const answer = { status: 201, headers: ['location', '/x'], body: '{"é":"💳"}', rights };
    const none = { headers: undefined, body: undefined, rights: [], reactor_id: undefined };
    expect(await openIt(sealAnswer(claim, answer))).to.deep.equal({ ...none, ...answer });
    const empty = await openIt(sealAnswer(claim, { status: 204 }));
    expect(empty).to.deep.equal({ ...none, status: 204 });
    expect((await openIt(sealAnswer(claim, { status: 200, reactor_id: 'r' }))).reactor_id).to.equal(
      'r',
    );
    expect((await openIt(sealAnswer(claim, { status: 200, body: '' }))).body).to.equal('');
  });
  it('opens for no other key and no other tenant', async () => {
    const sealed = sealAnswer(claim, { status: 200, body: 'x' });
    const others = [
      { ...claim, scope: randomUUID() },
      { ...claim, tenant_id: 'other' },
    ];
    for (const other of others) {
      const opened = await openIt(sealed, other).catch((error: Error) => error.name);
      expect(opened).to.equal('SealBrokenError');
    }
  });
  it('has the moment of the effect where it was left open, and nowhere else', async () => {
    const epoch = new Date(0).toISOString();
    const decoy = `"metadata":{"x":"\\"created_at\\":\\"${epoch}","created_at":"${epoch}"}`;
    const body = `{${decoy},"created_by":"me","created_at":"${epoch}"}`;
    const sealed = sealAnswer(claim, { status: 201, body, effect_at_index: createdAtIndex(body) });
    const at = Date.UTC(2026, 1, 3, 4, 5, 6, 7);
    const opened = await openIt(sealed, claim, at);
    const expected = `{${decoy},"created_by":"me","created_at":"2026-02-03T04:05:06.007Z"}`;
    expect(opened.body).to.equal(expected);
    expect(writeEffectTime(body, null, at)).to.equal(body);
  });
});
