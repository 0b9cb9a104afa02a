/** Reactor formulas: code that reactors share, with what it must be configured and called with (facts 9.1). */
import { type Static, Type } from 'typebox';
import { audit, Name, nullable, oneOf, Uuid, UuidInBody } from './fields.ts';
import { defineOperation } from './operation.ts';
import { pageOf, pageQuery } from './pagination.ts';
import { Problem } from './problem.ts';
import { Code } from './scripts.ts';

/** Facts 0.2: entries of each list of declarations. */
export const DECLARATIONS_MAX = 25;
const DECLARED_NAME_LENGTH_MAX = 200;
const DESCRIPTION_LENGTH_MAX = 1_000;
const DECLARATION_DESCRIPTION_LENGTH_MAX = 400;
const ICON_LENGTH_MAX = 50_000;

export const FORMULA_TYPES = ['private', 'official'] as const;
export const VALUE_TYPES = ['string', 'boolean', 'number'] as const;
export type ValueType = (typeof VALUE_TYPES)[number];

/** Text of several lines; no NUL, which Postgres cannot hold. */
const text = (maxLength: number) => Type.String({ maxLength, pattern: '^[^\\u0000]*$' });

const ConfigurationDeclaration = Type.Object(
  {
    name: Type.String({ maxLength: DECLARED_NAME_LENGTH_MAX, pattern: '^[A-Za-z0-9_-]+$' }),
    description: Type.Optional(nullable(text(DECLARATION_DESCRIPTION_LENGTH_MAX))),
    type: oneOf(VALUE_TYPES),
  },
  { title: 'ReactorFormulaConfiguration' },
);
/** A name that reactors of the formula must configure. */
export type ConfigurationDeclaration = Static<typeof ConfigurationDeclaration>;

const RequestParameter = Type.Object(
  {
    name: Type.String({
      maxLength: DECLARED_NAME_LENGTH_MAX,
      pattern: '^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?$',
      description: 'Nested properties have dot-separated names: `card.number`',
    }),
    description: Type.Optional(nullable(text(DECLARATION_DESCRIPTION_LENGTH_MAX))),
    type: oneOf(VALUE_TYPES),
    optional: Type.Optional(nullable(Type.Boolean({ default: false }))),
  },
  { title: 'ReactorFormulaRequestParameter' },
);
/** An argument that callers must give, or may. */
export type RequestParameter = Static<typeof RequestParameter>;

export const ReactorFormula = Type.Object(
  {
    id: Uuid,
    type: oneOf(FORMULA_TYPES),
    status: oneOf(['verified', 'coming_soon']),
    name: Name,
    description: Type.Optional(Type.String()),
    icon: Type.Optional(Type.String()),
    code: Type.String(),
    configuration: Type.Array(ConfigurationDeclaration),
    request_parameters: Type.Array(RequestParameter),
    ...audit,
  },
  { title: 'ReactorFormula' },
);
export type ReactorFormula = Static<typeof ReactorFormula>;

const values = {
  type: oneOf(FORMULA_TYPES),
  name: Name,
  description: Type.Optional(nullable(text(DESCRIPTION_LENGTH_MAX))),
  icon: Type.Optional(
    nullable(
      Type.String({
        maxLength: ICON_LENGTH_MAX,
        pattern: '^data:image/(?:png|jpe?g|svg\\+xml);base64,[A-Za-z0-9+/]+={0,2}$',
        description: 'A data URL',
      }),
    ),
  ),
  code: Code,
  configuration: Type.Optional(
    nullable(Type.Array(ConfigurationDeclaration, { maxItems: DECLARATIONS_MAX })),
  ),
  request_parameters: Type.Optional(
    nullable(Type.Array(RequestParameter, { maxItems: DECLARATIONS_MAX })),
  ),
};

const CreateReactorFormulaRequest = Type.Object(
  { id: Type.Optional(nullable(UuidInBody)), ...values },
  { title: 'CreateReactorFormulaRequest' },
);
export type CreateReactorFormulaRequest = Static<typeof CreateReactorFormulaRequest>;

const UpdateReactorFormulaRequest = Type.Object(
  { ...values, type: Type.Optional(nullable(oneOf(FORMULA_TYPES))) },
  { title: 'UpdateReactorFormulaRequest' },
);
export type UpdateReactorFormulaRequest = Static<typeof UpdateReactorFormulaRequest>;

const params = Type.Object({ id: Uuid });
const base = { plane: 'control', tag: 'Reactor formulas' } as const;
const refusals = { 400: Problem, 401: Problem, 403: Problem } as const;
/** Code could not be checked now. */
const unchecked = { 429: Problem, 503: Problem } as const;

export const createReactorFormula = defineOperation({
  ...base,
  operationId: 'createReactorFormula',
  method: 'POST',
  path: '/reactor-formulas',
  permission: 'reactor:create',
  summary: 'Create a formula, under an id of your own if you give one',
  body: CreateReactorFormulaRequest,
  responses: { 201: ReactorFormula, ...refusals, 409: Problem, ...unchecked },
});

export const listReactorFormulas = defineOperation({
  ...base,
  operationId: 'listReactorFormulas',
  method: 'GET',
  path: '/reactor-formulas',
  permission: 'reactor:read',
  summary: 'List formulas, newest first; `name` matches anywhere, `*` stands for any characters',
  query: Type.Object({ name: Type.Optional(Type.String()), ...pageQuery }),
  responses: { 200: pageOf(ReactorFormula), ...refusals },
});

export const getReactorFormula = defineOperation({
  ...base,
  operationId: 'getReactorFormula',
  method: 'GET',
  path: '/reactor-formulas/{id}',
  permission: 'reactor:read',
  summary: 'Get a formula',
  params,
  responses: { 200: ReactorFormula, 401: Problem, 403: Problem, 404: Problem },
});

export const updateReactorFormula = defineOperation({
  ...base,
  operationId: 'updateReactorFormula',
  method: 'PUT',
  path: '/reactor-formulas/{id}',
  permission: 'reactor:update',
  summary: 'Replace a formula; its reactors run the new code from their next call on',
  params,
  body: UpdateReactorFormulaRequest,
  responses: { 200: ReactorFormula, ...refusals, 404: Problem, ...unchecked },
});

export const deleteReactorFormula = defineOperation({
  ...base,
  operationId: 'deleteReactorFormula',
  method: 'DELETE',
  path: '/reactor-formulas/{id}',
  permission: 'reactor:delete',
  summary: 'Delete a formula that no reactor uses',
  params,
  responses: { 204: null, 401: Problem, 403: Problem, 404: Problem, 409: Problem },
});
