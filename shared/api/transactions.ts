/** The operations on transactions (spec: Transactions; facts 8). They need a key, and no permission. */
import { Type } from 'typebox';
import { Timestamp, Uuid } from './fields.ts';
import { defineOperation } from './operation.ts';
import { Problem } from './problem.ts';

const Transaction = Type.Object(
  { id: Uuid, created_at: Timestamp, created_by: Uuid, expires_at: Timestamp },
  { title: 'Transaction' },
);

const params = Type.Object({ id: Uuid });
const base = {
  plane: 'data',
  tag: 'Transactions',
  permission: 'any_key',
  method: 'POST',
} as const;
const refusals = { 400: Problem, 401: Problem, 404: Problem, 409: Problem } as const;

export const createTransaction = defineOperation({
  ...base,
  operationId: 'createTransaction',
  path: '/transactions',
  summary:
    'Open a transaction. Creates, updates and deletes of tokens and `POST /tokenize` that name it ' +
    'in the header BT-TRANSACTION-ID take effect when it is committed',
  responses: { 201: Transaction, 401: Problem, 409: Problem, 429: Problem },
});

export const commitTransaction = defineOperation({
  ...base,
  operationId: 'commitTransaction',
  path: '/transactions/{id}/commit',
  summary: 'Make everything written in a transaction take effect, or nothing of it',
  params,
  responses: { 200: null, 403: Problem, ...refusals },
});

export const rollbackTransaction = defineOperation({
  ...base,
  operationId: 'rollbackTransaction',
  path: '/transactions/{id}/rollback',
  summary: 'Forget everything written in a transaction',
  params,
  responses: { 200: null, ...refusals },
});
