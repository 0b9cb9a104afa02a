/** What a reactor becomes under PUT, which replaces, and PATCH, which merges (RFC 7396). Formulas stay. */
import type { PatchReactorRequest, UpdateReactorRequest } from '../../shared/api/reactors.ts';
import type { DataKeys } from '../../shared/crypto/data-keys.ts';
import { fieldError } from '../../shared/errors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import {
  type ConfigurationValues,
  sealConfiguration,
} from '../../shared/reactors/sealed-configuration.ts';
import { patchApplicationId, readApplicationId } from '../applications/acting-application.ts';
import { mergeConfiguration } from '../scripts/merge-configuration.ts';
import type { ReactorRow, ReactorValues } from './reactor-store.ts';
import { checkConfiguration, readDebugUntil } from './reactor-values.ts';

const ownerOf = ({ tenant_id, id }: Pick<ReactorRow, 'id' | 'tenant_id'>) =>
  ({ kind: 'reactor', tenant_id, id }) as const;

/** Checks the configuration of a request and seals it; `null` when it is empty. */
export async function sealChecked(
  client: Queryable,
  dataKeys: DataKeys,
  reactor: Pick<ReactorRow, 'id' | 'tenant_id' | 'formula_id'>,
  given: ConfigurationValues | null | undefined,
): Promise<Buffer | null> {
  const { tenant_id, formula_id } = reactor;
  const configuration = await checkConfiguration(client, tenant_id, formula_id, given);
  return sealConfiguration(dataKeys, ownerOf(reactor), configuration);
}

/** PUT: what is absent is gone, but the code. `current` is locked. */
export async function replaceReactor(
  client: Queryable,
  dataKeys: DataKeys,
  current: ReactorRow,
  body: UpdateReactorRequest,
): Promise<ReactorValues> {
  const { tenant_id, formula_id } = current;
  return {
    name: body.name,
    formula_id,
    code: readCode(current, body.code),
    application_id: await readApplicationId(client, tenant_id, body.application),
    configuration_sealed: await sealChecked(client, dataKeys, current, body.configuration),
    debug_until: await readDebugUntil(client, body.debug_until),
  };
}

/** PATCH: what is absent stays as it is, and is not judged again. `current` is locked. */
export async function patchReactor(
  client: Queryable,
  dataKeys: DataKeys,
  current: ReactorRow,
  patch: PatchReactorRequest,
): Promise<ReactorValues> {
  const { name, application, configuration, debug_until } = patch;
  return {
    name: name ?? current.name,
    formula_id: current.formula_id,
    code: readCode(current, patch.code),
    application_id: await patchApplicationId(client, current, application),
    configuration_sealed:
      configuration === undefined
        ? current.configuration_sealed
        : await patchConfiguration(client, dataKeys, current, configuration),
    debug_until:
      debug_until === undefined ? current.debug_until : await readDebugUntil(client, debug_until),
  };
}

async function patchConfiguration(
  client: Queryable,
  dataKeys: DataKeys,
  current: ReactorRow,
  patch: ConfigurationValues | null,
): Promise<Buffer | null> {
  const sealed = current.configuration_sealed;
  const merged = await mergeConfiguration(dataKeys, ownerOf(current), sealed, patch);
  return sealChecked(client, dataKeys, current, merged);
}

/** Code of its own may be replaced, but a formula's reactor gets none. */
function readCode(current: ReactorRow, code: string | null | undefined): string | null {
  if (code == null) return current.code;
  if (current.code !== null) return code;
  throw fieldError('code', 'This reactor runs the code of its formula');
}
