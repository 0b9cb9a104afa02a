/**
 * Certificates made in the test: a small DER writer and Node's own signatures, so that nothing has to
 * be installed and nothing in the repository expires.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto';

export interface Issued {
  /** PEM. */
  readonly cert: string;
  /** PEM, PKCS #8. */
  readonly key: string;
  readonly subject: string;
}

export interface CertificateOptions {
  readonly subject: string;
  /** Absent: signed by its own key. */
  readonly issuer?: Issued;
  /** DNS names; IPv4 addresses as they are. */
  readonly names?: readonly string[];
  readonly isCa?: boolean;
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

const DAY_MS = 86_400_000;
const TAG = { boolean: 0x01, integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06 } as const;
const UTF8 = 0x0c;
const GENERALIZED_TIME = 0x18;
const SEQUENCE = 0x30;
const SET = 0x31;
const ECDSA_WITH_SHA256 = sequence(der(TAG.oid, Buffer.from('2a8648ce3d040302', 'hex')));

/** An X.509 v3 certificate on P-256 (RFC 5280), valid from yesterday to tomorrow unless told. */
export function issueCertificate(options: CertificateOptions): Issued {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signer = options.issuer === undefined ? privateKey : createPrivateKey(options.issuer.key);
  const body = sequence(
    der(0xa0, der(TAG.integer, Buffer.from([2]))),
    der(TAG.integer, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    distinguishedName(options.issuer?.subject ?? options.subject),
    sequence(
      time(options.notBefore ?? new Date(Date.now() - DAY_MS)),
      time(options.notAfter ?? new Date(Date.now() + DAY_MS)),
    ),
    distinguishedName(options.subject),
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions(options))),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, signer)]);
  const certificate = sequence(body, ECDSA_WITH_SHA256, der(TAG.bits, signature));
  return {
    cert: pem(certificate),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    subject: options.subject,
  };
}

function extensions({ isCa = false, names = [] }: CertificateOptions): Buffer[] {
  const basic = sequence(...(isCa ? [der(TAG.boolean, Buffer.from([0xff]))] : []));
  const alternatives = names.map((name) =>
    /^[\d.]+$/.test(name)
      ? der(0x87, Buffer.from(name.split('.').map(Number)))
      : der(0x82, Buffer.from(name)),
  );
  return [
    extension('551d13', basic),
    ...(names.length > 0 ? [extension('551d11', sequence(...alternatives))] : []),
  ];
}

function extension(oid: string, value: Buffer): Buffer {
  return sequence(der(TAG.oid, Buffer.from(oid, 'hex')), der(TAG.octets, value));
}

function distinguishedName(commonName: string): Buffer {
  const type = der(TAG.oid, Buffer.from('550403', 'hex'));
  return sequence(der(SET, sequence(type, der(UTF8, Buffer.from(commonName)))));
}

function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/\.\d+|[-:T]/g, '');
  return der(GENERALIZED_TIME, Buffer.from(digits));
}

function sequence(...parts: Buffer[]): Buffer {
  return der(SEQUENCE, ...parts);
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function pem(certificate: Buffer): string {
  const lines = certificate.toString('base64').replace(/.{64}/g, '$&\n').trimEnd();
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}
