/** The envelope of offset lists and the query parameters that ask for a page of one (facts 1). */
import { type TSchema, Type } from 'typebox';

export const Pagination = Type.Object(
  {
    total_items: Type.Integer({ minimum: 0 }),
    page_number: Type.Integer({ minimum: 1 }),
    page_size: Type.Integer({ minimum: 0 }),
    total_pages: Type.Integer({ minimum: 0 }),
  },
  { title: 'Pagination' },
);

/** Bounds as in shared/http/list-parameters.ts, which reads them. */
export const pageQuery = {
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, default: 1 })),
  size: Type.Optional(Type.Integer({ minimum: 0, maximum: 100, default: 20 })),
};

/** A page of resources. A page past the end is an empty `data`, never an error. */
export function pageOf<S extends TSchema>(item: S) {
  return Type.Object({ pagination: Pagination, data: Type.Array(item) });
}

/** The envelope around the items of one page. */
export function toPage<T>(data: T[], totalItems: number, paging: { page: number; size: number }) {
  const { page, size } = paging;
  return {
    pagination: {
      total_items: totalItems,
      page_number: page,
      page_size: size,
      total_pages: size === 0 ? 0 : Math.ceil(totalItems / size),
    },
    data,
  };
}
