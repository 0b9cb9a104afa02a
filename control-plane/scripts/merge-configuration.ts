/** What a stored configuration becomes under a merge patch (RFC 7396). */
import { CONFIGURATION_ENTRIES_MAX } from '../../shared/api/scripts.ts';
import type { DataKeys } from '../../shared/crypto/data-keys.ts';
import { fieldError } from '../../shared/errors.ts';
import { mergePatch } from '../../shared/merge-patch.ts';
import {
  type ConfigurationOwner,
  type ConfigurationValues,
  openConfiguration,
} from '../../shared/reactors/sealed-configuration.ts';

/** `sealed` with `patch`, whose nulls remove; null removes all. Throws 400 above 25 names. */
export async function mergeConfiguration(
  dataKeys: DataKeys,
  owner: ConfigurationOwner,
  sealed: Buffer | null,
  patch: ConfigurationValues | null,
): Promise<ConfigurationValues> {
  if (patch === null) return {};
  const values = await openConfiguration(dataKeys, owner, sealed);
  const merged = mergePatch(values, patch) as ConfigurationValues;
  if (Object.keys(merged).length > CONFIGURATION_ENTRIES_MAX) {
    throw fieldError('configuration', `At most ${CONFIGURATION_ENTRIES_MAX} members are allowed`);
  }
  return merged;
}
