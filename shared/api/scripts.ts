/** What resources with customers' code have in common: reactor formulas, reactors, proxies. */
import { Type } from 'typebox';
import { nullable, UuidInBody } from './fields.ts';

/** Facts 0.2: characters of a script's source. */
const CODE_LENGTH_MAX = 50_000;
/** Facts 0.2: entries of a configuration, and characters of a value. */
export const CONFIGURATION_ENTRIES_MAX = 25;
const CONFIGURATION_VALUE_LENGTH_MAX = 50_000;
/** Names of 1 to 200; not those by which objects are made, which code could trip over. */
const CONFIGURATION_NAME = '^(?!(?:__proto__|constructor|prototype)$)[A-Za-z0-9_-]{1,200}$';

/** The source of a script. It is compiled in a sandbox before it is stored. */
export const Code = Type.String({
  minLength: 1,
  maxLength: CODE_LENGTH_MAX,
  pattern: '^[^\\u0000]*$',
});

/** Names and values that code gets besides its arguments. */
export const Configuration = Type.Unsafe<Record<string, string | null>>({
  type: 'object',
  propertyNames: { pattern: CONFIGURATION_NAME },
  additionalProperties: {
    type: ['string', 'null'],
    maxLength: CONFIGURATION_VALUE_LENGTH_MAX,
    pattern: '^[^\\u0000]*$',
  },
  maxProperties: CONFIGURATION_ENTRIES_MAX,
});

/** The application that code acts as. */
export const ApplicationReference = Type.Object({ id: UuidInBody });

/** The same in a merge patch: a null id removes it. */
export const ApplicationPatch = Type.Object({ id: Type.Optional(nullable(UuidInBody)) });
