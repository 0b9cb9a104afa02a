/** The management API on one screen: what every request passes, then the routes of each resource. */
import Router from '@koa/router';
import Koa from 'koa';
import { addApplicationRoutes } from './applications/application-routes.ts';
import type { ControlPlane } from './control-plane.ts';
import { addOpenApiRoute } from './documentation/openapi-route.ts';
import { answerErrors } from './error-response.ts';
import { addLogRoutes } from './logs/log-routes.ts';
import { observeRequests } from './observe-requests.ts';
import { addPermissionRoutes } from './permissions/permission-routes.ts';
import { checkHead, prepareAnswer, refuseUnmatched } from './prepare-answer.ts';
import { addProxyRoutes } from './proxies/proxy-routes.ts';
import { addReactorFormulaRoutes } from './reactor-formulas/reactor-formula-routes.ts';
import { addReactorRoutes } from './reactors/reactor-routes.ts';
import type { RequestState } from './request-state.ts';
import { addTenantRoutes } from './tenants/tenant-routes.ts';

export function createApp(plane: ControlPlane): Koa<RequestState> {
  const app = new Koa<RequestState>();
  // Errors are answered and logged by answerErrors; what is left is a client that went away.
  app.silent = true;
  app.use(observeRequests(plane));
  app.use(prepareAnswer(plane));
  app.use(answerErrors(plane));
  app.use(checkHead);

  const router = new Router<RequestState>({
    exclusive: 'specificity',
    sensitive: true,
    strict: true,
  });
  addTenantRoutes(router, plane);
  addApplicationRoutes(router, plane);
  addReactorFormulaRoutes(router, plane);
  addReactorRoutes(router, plane);
  addProxyRoutes(router, plane);
  addLogRoutes(router, plane);
  addPermissionRoutes(router, plane);
  addOpenApiRoute(router, plane);
  app.use(router.routes());
  app.use(refuseUnmatched);
  return app;
}
