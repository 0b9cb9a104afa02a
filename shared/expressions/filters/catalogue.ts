/** Every filter of the language by name. Names that are not here are an error. */
import { ALIAS_FILTERS } from './alias.ts';
import { ARRAY_FILTERS } from './array.ts';
import { CARD_FILTERS } from './card.ts';
import { CAST_FILTERS } from './cast.ts';
import { COLLECTION_FILTERS } from './collection.ts';
import { CRYPTO_FILTERS } from './crypto.ts';
import { DATE_FILTERS } from './date.ts';
import type { Filter } from './filter.ts';
import { JSON_FILTERS } from './json.ts';
import { MASKING_FILTERS } from './masking.ts';
import { MATH_FILTERS } from './math.ts';
import { REPLACE_FILTERS } from './replace.ts';
import { STRING_FILTERS } from './string.ts';
import { WEB_FILTERS } from './web.ts';

/** A Map, so that a filter named `constructor` is not found. */
export const FILTERS: ReadonlyMap<string, Filter> = new Map(
  Object.entries({
    ...STRING_FILTERS,
    ...REPLACE_FILTERS,
    ...WEB_FILTERS,
    ...MATH_FILTERS,
    ...ARRAY_FILTERS,
    ...COLLECTION_FILTERS,
    ...MASKING_FILTERS,
    ...CARD_FILTERS,
    ...ALIAS_FILTERS,
    ...CAST_FILTERS,
    ...CRYPTO_FILTERS,
    ...DATE_FILTERS,
    ...JSON_FILTERS,
  }),
);
