/** Every operation of the API, in the order of the documentation. */
import * as applications from './applications.ts';
import * as logs from './logs.ts';
import { getOpenApi } from './openapi-operation.ts';
import type { Operation } from './operation.ts';
import { listPermissions } from './permissions.ts';
import * as proxies from './proxies.ts';
import * as formulas from './reactor-formulas.ts';
import * as reactors from './reactors.ts';
import * as tenants from './tenants.ts';
import * as tokens from './tokens.ts';
import * as transactions from './transactions.ts';

export const OPERATIONS: readonly Operation[] = [
  tokens.createToken,
  tokens.listTokens,
  tokens.getToken,
  tokens.updateToken,
  tokens.deleteToken,
  tokens.searchTokens,
  tokens.tokenize,
  tokens.detokenize,
  transactions.createTransaction,
  transactions.commitTransaction,
  transactions.rollbackTransaction,
  reactors.createReactor,
  reactors.listReactors,
  reactors.getReactor,
  reactors.updateReactor,
  reactors.patchReactor,
  reactors.deleteReactor,
  reactors.react,
  reactors.reactAsync,
  reactors.getReactorResult,
  formulas.createReactorFormula,
  formulas.listReactorFormulas,
  formulas.getReactorFormula,
  formulas.updateReactorFormula,
  formulas.deleteReactorFormula,
  proxies.createProxy,
  proxies.listProxies,
  proxies.getProxy,
  proxies.updateProxy,
  proxies.patchProxy,
  proxies.deleteProxy,
  applications.createApplication,
  applications.listApplications,
  applications.getApplicationByKey,
  applications.getApplication,
  applications.updateApplication,
  applications.deleteApplication,
  applications.regenerateKey,
  tenants.getTenant,
  tenants.updateTenant,
  tenants.deleteTenant,
  tenants.createWebhookSecret,
  logs.listLogs,
  logs.listLogEntityTypes,
  listPermissions,
  getOpenApi,
];
