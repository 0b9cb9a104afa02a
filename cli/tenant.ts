/** `sallyport tenant create|list`: the API has no way to make a tenant, only this has. */
import { Command } from 'commander';
import { listTenants } from '../control-plane/tenants/tenant-store.ts';
import { createManagedTenant } from '../embedded/first-start.ts';
import { inTransaction } from '../shared/postgres/pool.ts';
import { type JsonOption, print } from './print.ts';
import { withDatabase } from './with-database.ts';

export function tenantCommand(source: NodeJS.ProcessEnv): Command {
  const tenant = new Command('tenant').description('make and list tenants');
  tenant
    .command('create')
    .description('make a tenant and its management key, which is shown this once')
    .option('--name <name>', 'name of the tenant (required)')
    .option('--json', 'answer with JSON')
    .action(({ name, ...options }: Partial<CreateOptions>, command: Command) => {
      // Not a required option of commander's: that would hide an argument too many.
      if (name === undefined) command.error("error: required option '--name <name>' is missing");
      return create(source, { ...options, name });
    });
  tenant
    .command('list')
    .description('list all tenants, oldest first')
    .option('--json', 'answer with JSON')
    .action((options: JsonOption) => list(source, options));
  return tenant;
}

interface CreateOptions extends JsonOption {
  readonly name: string;
}

async function create(source: NodeJS.ProcessEnv, options: CreateOptions): Promise<void> {
  const { tenant, application, key } = await withDatabase(source, (pool, installation) =>
    inTransaction(pool, (client) =>
      createManagedTenant(client, installation, { name: options.name }),
    ),
  );
  print(options, { tenant_id: tenant.id, application_id: application.id, key }, [
    `Tenant ${tenant.id}. Its management key, shown only this once:`,
    '',
    `    ${key}`,
    '',
  ]);
}

async function list(source: NodeJS.ProcessEnv, options: JsonOption): Promise<void> {
  const tenants = await withDatabase(source, (pool) => listTenants(pool));
  print(
    options,
    tenants,
    tenants.length === 0
      ? ['no tenants']
      : tenants.map(({ id, created_at, name }) =>
          [id, new Date(created_at ?? 0).toISOString(), name].join('  '),
        ),
  );
}
