/**
 * A reactor as data planes cache it: what runs, what it declares, and its configuration, which stays
 * sealed until a run needs it, together with the tenant's configuration version it was read at.
 */
import type { ConfigurationDeclaration, RequestParameter } from '../api/reactor-formulas.ts';
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';

export interface ReactorEntry {
  tenant_id: string;
  reactor_id: string;
  /** `null` for a reactor with code of its own. */
  formula_id: string | null;
  /** Whose permissions `req.bt` and the tokens of the answer have; it may be gone by now. */
  application_id: string | null;
  code: string;
  /** Changes with the code. */
  code_version: string;
  /** What the formula declares; `null` for a reactor with code of its own. */
  configuration: ConfigurationDeclaration[] | null;
  request_parameters: RequestParameter[] | null;
  configuration_sealed: Buffer | null;
  /** Milliseconds since the epoch; until then answers carry what the code wrote to its console. */
  debug_until_ms: number | null;
  config_version: string;
}

const BY_ID = {
  name: 'reactor-by-id',
  text: `
    SELECT r.tenant_id, r.id AS reactor_id, r.formula_id, r.application_id,
           coalesce(f.code, r.code) AS code,
           coalesce(f.code_version, r.code_version) AS code_version,
           f.configuration, f.request_parameters, r.configuration_sealed,
           ${milliseconds('r.debug_until')} AS debug_until_ms, t.config_version
    FROM reactors r
    JOIN tenants t ON t.id = r.tenant_id
    LEFT JOIN reactor_formulas f ON f.tenant_id = r.tenant_id AND f.id = r.formula_id
    WHERE r.tenant_id = $1 AND r.id = $2 AND coalesce(f.code, r.code) IS NOT NULL`,
};

/** The reactor with its formula and its version, in one statement; `undefined` when it is gone. */
export async function loadReactor(
  db: Queryable,
  tenantId: string,
  reactorId: string,
): Promise<ReactorEntry | undefined> {
  const { rows } = await db.query<ReactorEntry>({ ...BY_ID, values: [tenantId, reactorId] });
  return rows[0];
}
