import { createSecretKey, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { type DataKeys, openWith, type TenantKeys } from '../../../shared/crypto/data-keys.ts';
import { SealBrokenError } from '../../../shared/crypto/envelope.ts';
import {
  type ConfigurationOwner,
  openConfiguration,
  sealConfiguration,
} from '../../../shared/reactors/sealed-configuration.ts';

const VALUES = { KEY: 'k-1', RETRIES: '3', NONE: null };

describe('a sealed configuration', () => {
  const key = { version: 1, key: createSecretKey(randomBytes(32)) };
  const keys: TenantKeys = {
    current: key,
    versions: new Map([[1, key.key]]),
    ...{ fingerprint: key.key, search: key.key },
  };
  /** A tenant's keys as they are, whoever asks: the label alone must tell tenants apart. */
  const dataKeys: DataKeys = {
    cached: () => keys,
    forTenant: async () => keys,
    open: async (_, sealed, label) => {
      const opened = openWith(keys, sealed, label);
      if (opened === undefined) throw new SealBrokenError();
      return opened;
    },
    forget: () => undefined,
  };
  const owner = { kind: 'reactor', tenant_id: 'tenant', id: 'mine' } as const;
  const seal = () => sealConfiguration(dataKeys, owner, VALUES);

  it('opens to the values it was sealed with, and hides them', async () => {
    const sealed = await seal();
    expect(sealed?.includes('k-1')).to.equal(false);
    expect(await openConfiguration(dataKeys, owner, sealed)).to.deep.equal(VALUES);
  });

  it('is null when it is empty, and opens so', async () => {
    expect(await sealConfiguration(dataKeys, owner, {})).to.equal(null);
    expect(await openConfiguration(dataKeys, owner, null)).to.deep.equal({});
  });

  const others: ConfigurationOwner[] = [
    { ...owner, id: 'other' },
    { ...owner, tenant_id: 'other' },
    { ...owner, kind: 'proxy' },
  ];
  for (const other of others) {
    it(`does not open as that of ${Object.values(other).join('/')}`, async () => {
      const opened = openConfiguration(dataKeys, other, await seal());
      expect(await opened.catch((error: unknown) => error)).to.be.instanceOf(SealBrokenError);
    });
  }
});
