/**
 * Signatures of what we send to addresses of tenants, as Standard Webhooks has them: HMAC-SHA-256 over
 * id, time and body. A receiver that knows one of the secrets can tell our requests from all others, and
 * an old one that is sent again from a new one.
 */
import { createHmac, type KeyObject, randomBytes } from 'node:crypto';

/** Names the kind of secret; what follows is base64. */
const SECRET_PREFIX = 'whsec_';
/** The standard asks for 24 to 64. */
export const SECRET_BYTES = 32;

export function newWebhookSecret(): Buffer {
  return randomBytes(SECRET_BYTES);
}

/** The secret as its tenant is told it, once. */
export function webhookSecretText(secret: Buffer): string {
  return SECRET_PREFIX + secret.toString('base64');
}

export interface WebhookMessage {
  /** The same each time the message is sent. */
  readonly id: string;
  /** Seconds since the epoch, when it is sent. */
  readonly timestamp_s: number;
  readonly body: string;
}

/**
 * The headers that go with a message, names and values in turn. One signature per secret: while a secret
 * is being replaced, receivers that have the old one and those that have the new one both find theirs.
 * Without secrets there is no signature.
 */
export function webhookHeaders(message: WebhookMessage, secrets: readonly KeyObject[]): string[] {
  const { id, timestamp_s, body } = message;
  const headers = ['webhook-id', id, 'webhook-timestamp', String(timestamp_s)];
  if (secrets.length === 0) return headers;
  const signatures = secrets.map(
    (secret) =>
      `v1,${createHmac('sha256', secret).update(`${id}.${timestamp_s}.${body}`).digest('base64')}`,
  );
  return [...headers, 'webhook-signature', signatures.join(' ')];
}
