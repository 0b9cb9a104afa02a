/**
 * Schemas that several resources share, and two ways to write one. They describe texts on the wire;
 * what needs more than a pattern (ids of tokens, containers, dates) is checked by its own module.
 */
import { type Static, type TSchema, Type } from 'typebox';

/** Facts 0.2: the length of every name. */
export const NAME_LENGTH_MAX = 200;
/** Longer than every documented form of a date; keeps a megabyte of digits from its parser. */
const DATE_LENGTH_MAX = 100;
/** A uuid with its four hyphens: the format alone lets `urn:uuid:` through, which no column takes. */
const UUID_LENGTH = 36;

/** Ids we assign are version 4; any UUID is accepted where one is asked for. */
export const Uuid = Type.String({ format: 'uuid' });

/** The id of something in a request body. */
export const UuidInBody = Type.String({ format: 'uuid', maxLength: UUID_LENGTH });

/** One line of text: no control characters, which Postgres or a terminal could not hold. */
export const Name = Type.String({
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  pattern: '^[^\\u0000-\\u001F\\u007F\\u2028\\u2029]+$',
});

/** An instant in an answer: ISO 8601 in UTC. */
export const Timestamp = Type.Unsafe<Date>({ type: 'string', format: 'date-time' });

/** An instant in a request, in one of the forms of `expires_at` (spec: Token expiration). */
export const ExpiresAt = Type.String({ maxLength: DATE_LENGTH_MAX });

/** A word of a closed list. */
export function oneOf<const T extends string>(values: readonly T[]) {
  return Type.Unsafe<T>({ type: 'string', enum: [...values] });
}

/** The schema, or null: clients send null for members they leave out. */
export function nullable<S extends TSchema & { type?: unknown }>(schema: S) {
  return Type.Unsafe<Static<S> | null>({ ...schema, type: [schema.type, 'null'] });
}

/** Who created and last changed a resource, and when. */
export const audit = {
  created_by: Type.Optional(Uuid),
  created_at: Timestamp,
  modified_by: Type.Optional(Uuid),
  modified_at: Type.Optional(Timestamp),
};
