/** Detokenizing as reactors and proxies do it, under `token:use`. */
import { expect } from 'chai';
import {
  compileAccess,
  type StoredAccess,
  type Transform,
} from '../../../shared/access/access-rules.ts';
import { createDataKeys } from '../../../shared/crypto/data-keys.ts';
import { ApiError } from '../../../shared/errors.ts';
import { createTokenReaders } from '../../../shared/tokens/batch-reader.ts';
import { detokenize as detokenizeBody } from '../../../shared/tokens/detokenize.ts';
import { createTokenOpener } from '../../../shared/tokens/reveal.ts';
import type { TokenBody, TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const CARD = { number: NUMBER, expiration_month: 11, expiration_year: 2030 };
const MASKED = { ...CARD, number: 'XXXXXXXXXXXX4242' };

describe('detokenizing for reactors and proxies', () => {
  let vault: Vault;
  let tokens: TokenClient;
  let card: TokenBody;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
    card = await tokens.created({ type: 'card', data: CARD, metadata: { name: 'Ann' } });
  });
  after(() => vault.stop());

  /** Detokenizes under `token:use` with a reader of its own; says what was read and confirmed. */
  async function use(body: unknown, access: Partial<StoredAccess>) {
    const { pool, installation, tenant } = vault.control;
    const batches: number[] = [];
    const versions = new Set<string | null>();
    const dataKeys = createDataKeys(pool, installation);
    const { value } = await detokenizeBody(body, 'args', {
      tenant_id: tenant.id,
      access: compileAccess({ type: 'private', permissions: [], rules: [], ...access }),
      permission: 'token:use',
      readers: createTokenReaders(pool, (rows) => batches.push(rows)),
      opener: createTokenOpener(dataKeys, () => {}),
      confirm: ({ config_version }) => versions.add(config_version),
      accessed: () => undefined,
    });
    return { value, batches, versions };
  }
  const using = (transform: Transform): Partial<StoredAccess> => ({
    rules: [{ priority: 1, container: '/', transform, permissions: ['token:use'] }],
  });
  async function refusal(work: Promise<unknown>): Promise<ApiError> {
    const error = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof ApiError)) throw error ?? new Error('accepted');
    return error;
  }

  it('reads all tokens in one statement, and confirms each reading', async () => {
    const json = Array.from({ length: 100 }, (_, index) => index);
    const ids = (await tokens.send<string[]>('POST /tokenize', { json })).body;
    const read = await use({ a: ids.map((id) => `{{ ${id} }}`) }, using('reveal'));
    expect(read.value).to.deep.equal({ a: json });
    expect(read.batches).to.deep.equal([100]);
    expect([...read.versions])
      .to.have.length(1)
      .and.not.include(null);
  });
  it('puts in whole tokens beside the data of others', async () => {
    const other = await tokens.created({ type: 'token', data: 'plain', metadata: { a: 'b' } });
    const body = { whole: `{{ token: ${card.id} }}`, data: `{{ ${other.id} }}` };
    const { value, batches } = await use(body, using('reveal'));
    expect(value).to.deep.equal({ whole: { ...card, data: CARD }, data: 'plain' });
    expect(batches).to.deep.equal([2]);
  });
  it('reads nothing when there is nothing to replace', async () => {
    const { value, batches, versions } = await use({ a: 1 }, {});
    expect([value, batches, [...versions]]).to.deep.equal([{ a: 1 }, [], []]);
  });
  it('reveals by a plain permission, and obeys the transforms of rules', async () => {
    const body = `{{ ${card.id} }}`;
    const plainly = await use(body, { permissions: ['token:use'] });
    expect(plainly.value).to.deep.equal(CARD);
    expect((await use(body, using('reveal'))).value).to.deep.equal(CARD);
    expect((await use(body, using('mask'))).value).to.deep.equal(MASKED);
  });
  it('is refused with 403 under redact and without the permission', async () => {
    const body = { a: `{{ ${card.id} }}` };
    for (const access of [using('redact'), { permissions: ['token:read'] }, {}]) {
      expect((await refusal(use(body, access))).code).to.equal('forbidden');
    }
  });
  it('names members below what the body is called', async () => {
    const access = using('reveal');
    const malformed = await refusal(use({ a: ['{{'] }, access));
    expect(malformed.errors).to.have.all.keys('args.a.0');
    const failing = await refusal(use({ a: `{{ ${card.id} | to_number }}` }, access));
    expect(failing.errors).to.have.all.keys('args.a');
    const many = Array.from({ length: 101 }, (_, index) => `{{ token-${index} }}`);
    expect((await refusal(use(many, access))).errors).to.have.all.keys('args');
  });
});
