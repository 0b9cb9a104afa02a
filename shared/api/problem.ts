/** The body of every error: problem details (RFC 9457, design section 11). */
import { Type } from 'typebox';

export const Problem = Type.Object(
  {
    title: Type.String(),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.Optional(Type.String()),
    type: Type.Optional(Type.String()),
    instance: Type.Optional(Type.String()),
    errors: Type.Optional(
      Type.Record(Type.String(), Type.Array(Type.String()), {
        description: 'Messages by dot-separated path of the request member',
      }),
    ),
  },
  { title: 'Problem' },
);
