/** The 403 of a key without the right to a token, with what the audit trail tells of it. */
import { ApiError } from '../errors.ts';
import type { Permission } from './permissions.ts';

interface Denied {
  /** Those of the tokens asked for that were refused, where the request names several. */
  readonly tokens?: readonly { readonly id: string; readonly container: string }[];
  /** The container in which the permission is lacking, where it is about one. */
  readonly container?: string;
}

export class DeniedError extends ApiError {
  readonly permission: Permission;
  readonly denied: Denied;

  constructor(permission: Permission, detail: string, denied: Denied = {}) {
    super('forbidden', detail);
    this.permission = permission;
    this.denied = denied;
  }
}
