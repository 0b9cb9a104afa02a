/** `GET /openapi.json`: the contract as a document. Needs no key; says nothing about a tenant. */
import type Router from '@koa/router';
import manifest from '../../package.json' with { type: 'json' };
import { openApiDocument } from '../../shared/api/openapi.ts';
import { getOpenApi } from '../../shared/api/openapi-operation.ts';
import { OPERATIONS } from '../../shared/api/operations.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { RequestState } from '../request-state.ts';
import { addOperation } from '../serve-operation.ts';

export function addOpenApiRoute(router: Router<RequestState>, plane: ControlPlane): void {
  const document = openApiDocument(OPERATIONS, manifest.version);
  addOperation(router, plane, getOpenApi, async () => document);
}
