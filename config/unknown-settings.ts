/** Variables that look like settings of Sallyport and are none: misspelt ones would have no effect, unseen. */
import { nearName } from '../shared/near-name.ts';

// Kubernetes announces a Service named sallyport(-…) to every container by variables of these forms.
const KUBERNETES_SERVICE_LINK =
  /^SALLYPORT_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
/** Of this form a setting may be meant as well: the value tells. */
const KUBERNETES_PORT_LINK = /^SALLYPORT_(?:[A-Z0-9_]+_)?PORT=(?:tcp|udp|sctp):\/\//;
const PREFIX = 'SALLYPORT_';

/** A sentence on each variable of our prefix that is no setting; it names the one that was probably meant. */
export function unknownSettings(source: NodeJS.ProcessEnv, known: ReadonlySet<string>): string[] {
  return Object.entries(source).flatMap(([name, value]) => {
    if (!name.startsWith(PREFIX) || known.has(name)) return [];
    if (KUBERNETES_SERVICE_LINK.test(name)) return [];
    if (KUBERNETES_PORT_LINK.test(`${name}=${value}`)) return [];
    const plain = name.slice(PREFIX.length);
    const near = known.has(plain) ? plain : nearName(name, known);
    const advice = near === undefined ? 'see `npm run sallyport -- --help`' : `is it ${near}?`;
    return [`${name} is not a setting of Sallyport: ${advice}`];
  });
}
