/** Settings that a plane cannot do without; `npm start` gives them to the planes it starts. */
import { type KeyEncryption, localKeyEncryption, parseKek } from '../shared/crypto/local-key.ts';
import type { Environment } from './environment.ts';
import { EnvironmentError } from './read-variable.ts';

export interface RequiredSettings {
  databaseUrl: string;
  /** The database past any pooler. */
  directUrl: string;
  kek: KeyEncryption;
}

/** Throws `EnvironmentError` naming the variable that is missing. */
export function requiredSettings(environment: Environment): RequiredSettings {
  const { databaseUrl, databaseDirectUrl = databaseUrl, kek } = environment;
  if (databaseUrl === undefined || databaseDirectUrl === undefined) {
    throw new EnvironmentError('DATABASE_URL must be set');
  }
  const bytes = kek === undefined ? undefined : parseKek(kek);
  if (bytes === undefined) {
    throw new EnvironmentError('SALLYPORT_KEK or SALLYPORT_KEK_FILE must be set');
  }
  return { databaseUrl, directUrl: databaseDirectUrl, kek: localKeyEncryption(bytes) };
}
