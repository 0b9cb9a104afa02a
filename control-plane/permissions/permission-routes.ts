/** `/permissions`: which permissions there are. */
import type Router from '@koa/router';
import {
  listPermissions as catalogue,
  isApplicationType,
} from '../../shared/access/permissions.ts';
import { listPermissions } from '../../shared/api/permissions.ts';
import { fieldError } from '../../shared/errors.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { RequestState } from '../request-state.ts';
import { addOperation } from '../serve-operation.ts';

export function addPermissionRoutes(router: Router<RequestState>, plane: ControlPlane): void {
  addOperation(router, plane, listPermissions, async ({ query }) => {
    const types = query.all('application_type');
    if (types.length === 0) return catalogue();
    const [type] = types;
    if (types.length > 1 || !isApplicationType(type)) {
      throw fieldError('application_type', 'Must be one of public, private, management');
    }
    return catalogue(type);
  });
}
