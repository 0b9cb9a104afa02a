/** What a start says in the terminal. Pure text; the one place where a start shows a key. */
import { styleText } from 'node:util';

/** The key of the first management application, or the variable in which the operator gave it. */
export type ManagementKey =
  | { readonly generated: string }
  | { readonly variable: string; readonly file?: string | undefined };

// `styleText` leaves the codes out when stdout is no terminal or NO_COLOR is set.
const strong = (text: string): string => styleText('bold', text, { stream: process.stdout });
const quiet = (text: string): string => styleText('dim', text, { stream: process.stdout });
const block = (...lines: string[]): string => `${lines.join('\n')}\n`;

/** Said once, as soon as the key exists. `kekFile` is the generated key file, if there is one. */
export function newVaultText(key: ManagementKey, kekFile: string | undefined): string {
  const lines = ['', 'This is a new vault.', ''];
  if ('generated' in key) {
    lines.push('Its management key makes applications. It is shown only this once:', '');
    lines.push(`    ${strong(key.generated)}`, '');
  }
  if (kekFile !== undefined) {
    lines.push('One file seals every token. Keep a copy of it; nothing opens without:', '');
    lines.push(`    ${strong(kekFile)}`, '');
  }
  return block(...lines);
}

/**
 * Three commands that work when copied one after another into one shell. `certFile`: the certificate
 * of a public port with TLS.
 */
export function firstStepsText(
  baseUrl: string,
  key: ManagementKey,
  certFile: string | undefined,
): string {
  const management =
    'generated' in key ? `'BT-API-KEY: ${key.generated}'` : `"BT-API-KEY: $${key.variable}"`;
  return block(
    'First steps, to copy one after another into another terminal:',
    '',
    ...preparation(key, certFile),
    quiet('# 1. An application that may store tokens, and read them in clear.'),
    `MADE=$(curl -sS ${baseUrl}/applications \\`,
    `  -H ${management} \\`,
    `  -H 'Content-Type: application/json' -d '{"name": "First steps", "type": "private",`,
    `  "rules": [{"description": "All tokens, in clear", "priority": 1, "container": "/",`,
    `  "transform": "reveal", "permissions": ["token:create", "token:read"]}]}')`,
    `echo "$MADE"; KEY=$(echo "$MADE" | sed -n 's/.*"key": *"\\([^"]*\\)".*/\\1/p')`,
    '',
    quiet('# 2. It stores a card. Answers to a write are masked.'),
    `curl -sS ${baseUrl}/tokens -H "BT-API-KEY: $KEY" \\`,
    `  -H 'Content-Type: application/json' -d '{"id": "my-first-card", "type": "card",`,
    `  "data": {"number": "4242424242424242", "expiration_month": 12,`,
    `  "expiration_year": 2030}}'; echo`,
    '',
    quiet('# 3. It reads the card: in clear, because its rule says so.'),
    `curl -sS ${baseUrl}/tokens/my-first-card -H "BT-API-KEY: $KEY"; echo`,
    '',
  );
}

/** What the other terminal does not know yet: a given key, a certificate that nobody signed. */
function preparation(key: ManagementKey, certFile: string | undefined): string[] {
  const lines: string[] = [];
  if ('variable' in key) {
    const { variable, file } = key;
    const given = file === undefined ? '…   # the key you gave' : `"$(cat ${quoted(file)})"`;
    lines.push(`${variable}=${given}`);
  }
  if (certFile !== undefined) {
    lines.push(quiet(`# A certificate that curl does not trust: add --cacert ${quoted(certFile)}`));
  }
  return lines.length === 0 ? [] : [...lines, ''];
}

/** One word for a POSIX shell, whatever the path holds. */
function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}

/** The last line of every start. */
export function readyText(baseUrl: string): string {
  return block(`Sallyport is ready at ${strong(baseUrl)}`);
}
