/** Whose request goes through which proxy, as far as bodies and transforms need to know. */
import type { Access } from '../../shared/access/access-rules.ts';
import type { ConfigReading } from '../../shared/config-entries/config-version.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CallingRun } from '../exchange.ts';

/** Code and its version, which changes with the code. */
export interface ProxyTransform {
  readonly code: string;
  readonly code_version: string;
}

/** What bodies and transforms need of a proxy. */
export interface TransformedProxy {
  readonly tenant_id: string;
  readonly proxy_id: string;
  readonly request_transform: ProxyTransform | null;
  readonly response_transform: ProxyTransform | null;
  readonly application_id: string | null;
  /** The version that the request was decided at. */
  readonly config_version: string;
  readonly configuration_sealed: Buffer | null;
  readonly leak_tripwire: 'off' | 'report' | 'redact';
}

/** The right by which a request goes through a proxy. */
export interface ProxyRight {
  /** Whose right it is, for the audit trail. */
  readonly application: Pick<CachedApplication, 'tenant_id' | 'application_id'> | undefined;
  /** `undefined`: an anonymous caller, whose request brings out no token. */
  readonly access: Access | undefined;
  /**
   * Asked again before a transform calls out and when it has ended. Rejects when the key, its right to
   * the tokens that were used, or the proxy is gone by now.
   */
  current(): Promise<unknown>;
}

export interface ProxyContext {
  readonly proxy: TransformedProxy;
  readonly right: ProxyRight;
  /** Throws when the configuration read along is not the one that the request was decided on. */
  confirm(reading: ConfigReading): void;
  readonly traceId: string;
  /** The run of a script that calls the proxy, if it is one. */
  readonly callingRun?: CallingRun | undefined;
}
