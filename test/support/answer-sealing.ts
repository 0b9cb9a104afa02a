/** What writes answers down as tokens change, for tests that commit transactions by themselves. */
import { createDataKeys } from '../../shared/crypto/data-keys.ts';
import type { AnswerSealing } from '../../shared/idempotency/named-token.ts';
import { createTokenOpener } from '../../shared/tokens/reveal.ts';
import type { TestControlPlane } from './control-plane.ts';

export async function answerSealing({
  pool,
  installation,
  tenant,
}: Pick<TestControlPlane, 'pool' | 'installation' | 'tenant'>): Promise<AnswerSealing> {
  const dataKeys = createDataKeys(pool, installation);
  const keys = await dataKeys.forTenant(tenant.id);
  return { keys, opener: createTokenOpener(dataKeys, () => undefined) };
}
