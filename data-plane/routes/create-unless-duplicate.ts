/** `POST /tokens` of contents that must not be stored twice: the new token, or the one that is there. */
import type { Transform } from '../../shared/access/access-rules.ts';
import type { PoolClient } from '../../shared/postgres/pool.ts';
import type { TokenCreation } from '../../shared/tokens/create-token.ts';
import { createdAnswer, storedJson } from '../../shared/tokens/created-token.ts';
import type { CreationContext } from '../../shared/tokens/store-token.ts';
import { withMember } from '../../shared/tokens/token-json.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Services } from '../services.ts';
import type { Write } from '../write-transaction.ts';
import {
  duplicateAnswer,
  duplicateRights,
  storeUnlessDuplicate,
  writtenDuplicate,
} from './deduplicate.ts';

export interface Placement {
  readonly creation: TokenCreation;
  readonly transform: Transform;
  readonly context: CreationContext;
}

export async function createUnlessDuplicate(
  client: PoolClient,
  { creation, transform, context }: Placement,
  application: CachedApplication,
  services: Services,
): Promise<Write> {
  const outcome = await storeUnlessDuplicate(client, creation, context);
  const { container } = creation.draft;
  if ('duplicate' in outcome) {
    const { duplicate } = outcome;
    const json = await duplicateAnswer(duplicate, application, services);
    const shown = duplicateRights(duplicate, application);
    return {
      answer: createdAnswer(duplicate, json),
      operation: 'deduplicate',
      tokens: [writtenDuplicate(duplicate, application)],
      rights: [{ permission: 'token:create', container, transform: 'redact' }, ...shown],
    };
  }
  const json = storedJson(outcome.stored, application.tenant_id, transform);
  const { row } = outcome.stored;
  return {
    answer: createdAnswer(row, withMember(json, '_extras', '{"deduplicated":false}')),
    operation: 'create',
    tokens: [{ id: row.id, container, transform }],
  };
}
