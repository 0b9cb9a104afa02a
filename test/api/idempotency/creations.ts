/** Tokens of every form, to be created with an idempotency key and changed afterwards. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { JsonObject } from '../../support/http-call.ts';
import type { TokenBody, TokenClient } from '../tokens/token-client.ts';
import { begin, type TransactionClient } from '../transactions/transaction-client.ts';

export interface Creation {
  readonly json: JsonObject;
  /** A patch of its data. */
  readonly data: unknown;
}

/** More than is read with others'. */
const LARGE = 'large '.repeat(8_000);

/** [what it is, how it is created and patched]; each call gives another token. */
export const CREATIONS: readonly [string, () => Creation][] = [
  ['token', () => ({ json: { type: 'token', data: { any: ['thing', 1.5] } }, data: { b: 2 } })],
  [
    'card',
    () => ({
      json: { type: 'card', data: { number: '4242424242424242', cvc: '123' } },
      data: { expiration_month: 1, expiration_year: 2040 },
    }),
  ],
  [
    'bank',
    () => ({
      json: { type: 'bank', data: { routing_number: '021000021', account_number: '0012345678' } },
      data: { account_number: '0012345679' },
    }),
  ],
  [
    'card_number',
    () => ({
      json: { type: 'card_number', data: '5555555555554444' },
      data: '4242424242424242',
    }),
  ],
  [
    'us_bank_account_number',
    () => ({ json: { type: 'us_bank_account_number', data: '00123456789' }, data: '00123456780' }),
  ],
  [
    'us_bank_routing_number',
    () => ({ json: { type: 'us_bank_routing_number', data: '021000021' }, data: '011000015' }),
  ],
  [
    'social_security_number',
    () => ({ json: { type: 'social_security_number', data: '123-45-6789' }, data: '123456780' }),
  ],
  [
    'employer_id_number',
    () => ({ json: { type: 'employer_id_number', data: '12-3456789' }, data: '12-3456780' }),
  ],
  [
    'token with everything',
    () => ({
      json: {
        type: 'token',
        id: `id of é ${randomUUID()}`,
        data: { number: 12345678901234, text: 'a "quoted" 💳 \\ \u2028' },
        mask: { text: '{{ data.text | reveal_last: 3 }}', fixed: [null, 'shown'] },
        metadata: { one: 'é"\\', two: '' },
        search_indexes: ['{{ data.text }}', '{{ data.number }}'],
        fingerprint_expression: '{{ data.text }}',
        containers: ['/Customer/a/'],
      },
      data: { number: 2 },
    }),
  ],
  [
    'token with an alias',
    () => ({
      json: { type: 'token', data: randomUUID(), id: '{{ data | alias_preserve_format }}' },
      data: 'other',
    }),
  ],
  [
    'large token',
    () => ({ json: { type: 'token', data: LARGE, mask: `seen ${LARGE}` }, data: 'small' }),
  ],
  [
    'large token by its indexes',
    () => ({
      // Six bytes a character, as they are stored.
      json: {
        type: 'token',
        data: 'x',
        search_indexes: ['\u0001'.repeat(4_000), '\u0001'.repeat(3_999)],
      },
      data: 'small',
    }),
  ],
];

const TIME = () => new Date(Date.now() + 1_800_000).toISOString();

type Patch = readonly [member: string, patch: (creation: Creation) => JsonObject];

/** A patch of each member. */
export const PATCHES: readonly Patch[] = [
  ['data', ({ data }) => ({ data })],
  ['metadata', () => ({ metadata: { changed: 'meanwhile' } })],
  ['containers', () => ({ containers: ['/moved/'] })],
  ['expires_at', () => ({ expires_at: TIME() })],
  ['mask', () => ({ mask: 'hidden' })],
];

export interface Changing {
  readonly url: string;
  readonly key: string;
  readonly by: TokenClient;
}

type Change = (token: TokenBody, creation: Creation, changing: Changing) => Promise<void>;

const done = ({ status, text }: { status: number; text: string }): void => {
  expect(status, text).to.be.within(200, 204);
};

/** Carries `work` out in a transaction of its own, and ends it. */
const within =
  (
    end: 'commit' | 'rollback',
    work: (t: TransactionClient, ...change: Parameters<Change>) => Promise<void>,
  ) =>
  async (...change: Parameters<Change>): Promise<void> => {
    const [, , { url, key }] = change;
    const transaction = await begin(url, key);
    await work(transaction, ...change);
    done(await transaction[end]());
  };

/** [how a token is changed, the change]. */
export const CHANGES: readonly [string, Change][] = [
  ...PATCHES.map(([member, patch]): [string, Change] => [
    `a patch of its ${member}`,
    async ({ id }, creation, { by }) => done(await by.patch(id, patch(creation))),
  ]),
  ['its deletion', async ({ id }, _, { by }) => done(await by.remove(id))],
  ...PATCHES.map(([member, patch]): [string, Change] => [
    `a committed patch of its ${member}`,
    within('commit', async (transaction, { id }, creation) =>
      done(await transaction.patch(id, patch(creation))),
    ),
  ]),
  [
    'a committed deletion',
    within('commit', async (transaction, { id }) => done(await transaction.remove(id))),
  ],
  [
    'a committed replacement',
    within('commit', async (transaction, { id }) => {
      done(await transaction.remove(id));
      done(await transaction.create({ type: 'token', data: 'another', id }));
    }),
  ],
];

/** [how a token is left as it was, what was tried]. */
export const ROLLED_BACK: readonly [string, Change][] = [
  [
    'a patch',
    within('rollback', async (transaction, { id }, { data }) =>
      done(await transaction.patch(id, { data })),
    ),
  ],
  [
    'a deletion',
    within('rollback', async (transaction, { id }) => done(await transaction.remove(id))),
  ],
];
