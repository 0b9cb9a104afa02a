/**
 * What an operation of the API is: the one description that validates, authorises, documents and
 * types it. Adding an endpoint is an operation here, what carries it out, and a test.
 */
import type { Static, TObject, TSchema } from 'typebox';
import type { Permission } from '../access/permissions.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What the caller's key must allow: a permission, nothing but being valid, or not even a key. */
export type Requirement = Permission | 'any_key' | 'no_key';

export interface Operation {
  /** Unique, camelCase: names the call in generated clients. */
  operationId: string;
  method: Method;
  /** Path template, `/applications/{id}`; also the `route` of logs and metrics. */
  path: string;
  plane: 'control' | 'data';
  permission: Requirement;
  /** One line for the documentation. */
  summary: string;
  /** Resources are grouped by it in the documentation. */
  tag: string;
  params?: TObject;
  query?: TObject;
  body?: TSchema;
  /** No body is the same as an empty object. */
  bodyOptional?: true;
  /** The body's media type; `application/json` unless given. */
  mediaType?: 'application/json' | 'application/merge-patch+json';
  /** Has no effect although its method says so: an idempotency key means nothing to it. */
  safe?: true;
  /** What it writes may be written in a transaction, which the header BT-TRANSACTION-ID names. */
  transactional?: true;
  /** Answers by status. Exactly one is a success; `null` is an answer without body. */
  responses: { readonly [status: number]: TSchema | null };
}

/** Keeps the exact types of `operation`, so that whoever serves it is typed by it. */
export function defineOperation<const O extends Operation>(operation: O): O {
  return operation;
}

const KEYED_METHODS: readonly Method[] = ['POST', 'PUT', 'PATCH'];

/** Whether its requests may name an idempotency key, by which they have their effect once. */
export function takesIdempotencyKey({ method, safe }: Pick<Operation, 'method' | 'safe'>): boolean {
  return safe !== true && KEYED_METHODS.includes(method);
}

/** The status of the operation's success. */
export function successStatus(operation: Operation): number {
  const status = Object.keys(operation.responses)
    .map(Number)
    .find((code) => code < 400);
  if (status === undefined) throw new Error(`${operation.operationId} has no success`);
  return status;
}

/** Type of the validated body; `undefined` for operations without one. */
export type BodyOf<O extends Operation> = O['body'] extends TSchema ? Static<O['body']> : undefined;

/** Type of the success's body; `undefined` for a success without one. */
export type AnswerOf<O extends Operation> =
  Success<O> extends TSchema ? Static<Success<O>> : undefined;

type Success<O extends Operation> = O['responses'][keyof O['responses'] & (200 | 201 | 202 | 204)];
