/**
 * Notices card verification codes in data where they are kept like anything else: in generic tokens,
 * whose members Sallyport does not know. It only counts; what it saw is not repeated anywhere.
 */

const CVC_NAMES = new Set(['cvc', 'cvc2', 'cvv', 'cvv2', 'csc', 'cid', 'security_code']);
/** Nodes looked at: enough for any real card object, little for a megabyte of data. */
const NODES_MAX = 200;

/** Whether an object in `data` has a member that is named like a verification code and looks so. */
export function holdsCvc(data: unknown): boolean {
  const open: unknown[] = [data];
  for (let seen = 0; seen < NODES_MAX && open.length > 0; seen += 1) {
    const node = open.pop();
    if (typeof node !== 'object' || node === null) continue;
    for (const [name, value] of Object.entries(node).slice(0, NODES_MAX)) {
      if (CVC_NAMES.has(name.toLowerCase()) && /^\d{3,4}$/.test(String(value))) return true;
      if (typeof value === 'object') open.push(value);
    }
  }
  return false;
}
