/**
 * The token types and what each brings when the request says nothing: container, mask, fingerprint
 * and search index expressions (facts 5.1). The rules for their data are in token-data.ts.
 */

export interface TokenTypeDefaults {
  readonly container: string;
  /** Null: no mask, so masked reads show no data at all. */
  readonly mask: string | Readonly<Record<string, string>> | null;
  readonly fingerprint_expression: string;
  readonly search_indexes: readonly string[];
}

const LAST_FOUR = '{{ data | reveal_last: 4 }}';
const WITHOUT_DASHES = "{{ data | remove: '-' }}";
const NUMBER_INDEXES = ['{{ data }}', WITHOUT_DASHES, '{{ data | last4 }}'] as const;

export const TOKEN_TYPES = {
  token: {
    container: '/general/high/',
    mask: null,
    fingerprint_expression: '{{ data | stringify }}',
    search_indexes: [],
  },
  card: {
    container: '/pci/high/',
    mask: {
      number: '{{ data.number | reveal_last: 4 }}',
      expiration_month: '{{ data.expiration_month }}',
      expiration_year: '{{ data.expiration_year }}',
    },
    fingerprint_expression: '{{ data.number }}',
    search_indexes: [],
  },
  bank: {
    container: '/bank/high/',
    mask: {
      routing_number: '{{ data.routing_number }}',
      account_number: '{{ data.account_number | reveal_last: 4 }}',
    },
    fingerprint_expression: '{{ data.account_number }}|{{ data.routing_number }}',
    search_indexes: [],
  },
  card_number: {
    container: '/pci/high/',
    mask: LAST_FOUR,
    fingerprint_expression: '{{ data }}',
    search_indexes: [],
  },
  us_bank_account_number: {
    container: '/bank/high/',
    mask: LAST_FOUR,
    fingerprint_expression: '{{ data }}',
    search_indexes: [],
  },
  us_bank_routing_number: {
    container: '/bank/low/',
    mask: LAST_FOUR,
    fingerprint_expression: '{{ data }}',
    search_indexes: [],
  },
  social_security_number: {
    container: '/pii/high/',
    mask: LAST_FOUR,
    fingerprint_expression: WITHOUT_DASHES,
    search_indexes: NUMBER_INDEXES,
  },
  employer_id_number: {
    container: '/pii/high/',
    mask: LAST_FOUR,
    fingerprint_expression: WITHOUT_DASHES,
    search_indexes: NUMBER_INDEXES,
  },
} as const satisfies Record<string, TokenTypeDefaults>;

export type TokenType = keyof typeof TOKEN_TYPES;

/** Exact spelling, own names only: `CARD` and `constructor` are not types. */
export function isTokenType(name: unknown): name is TokenType {
  return typeof name === 'string' && Object.hasOwn(TOKEN_TYPES, name);
}

export function tokenTypeDefaults(type: TokenType): TokenTypeDefaults {
  return TOKEN_TYPES[type];
}

/**
 * The card or account number in validated `data`, as digits; empty for types that hold none. No
 * evaluated id, mask, index or other clear text may contain it (design section 12). The routing
 * number of a bank is public, and `cvc` is not part of `data`.
 */
export function protectedNumbers(type: TokenType, data: unknown): string[] {
  const number = protectedPart(type, data);
  return typeof number === 'string' ? [number] : [];
}

function protectedPart(type: TokenType, data: unknown): unknown {
  switch (type) {
    case 'card':
      return memberOf(data, 'number');
    case 'bank':
      return memberOf(data, 'account_number');
    case 'card_number':
    case 'us_bank_account_number':
      return data;
    default:
      return undefined;
  }
}

function memberOf(data: unknown, name: string): unknown {
  return typeof data === 'object' && data !== null
    ? Object.getOwnPropertyDescriptor(data, name)?.value
    : undefined;
}
