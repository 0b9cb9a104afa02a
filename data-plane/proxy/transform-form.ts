/** Form bodies as transforms see them, an object with a list for a repeated field, and back. */
import { encodeFormText, formText } from './splice-form.ts';

/** As many as a JSON object may have members. */
export const FORM_FIELDS_MAX = 10_000;

/** `undefined` above the most fields. What is not percent-encoded UTF-8 is read as browsers do. */
export function formObject(text: string): Record<string, string | string[]> | undefined {
  if (hasTooManyFields(text)) return undefined;
  // Without a prototype a field named `__proto__` is just that.
  const object: Record<string, string | string[]> = Object.create(null);
  // A leading `?` of the text itself would be dropped.
  for (const [name, value] of new URLSearchParams(`?${text}`)) {
    const known = object[name];
    if (known === undefined) object[name] = value;
    else if (Array.isArray(known)) known.push(value);
    else object[name] = [known, value];
  }
  return object;
}

export function hasTooManyFields(text: string): boolean {
  let fields = 1;
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) {
    fields += 1;
    if (fields > FORM_FIELDS_MAX) return true;
  }
  return false;
}

/** Lists repeat their field; objects inside are compact JSON, null is an empty value. */
export function printForm(object: object): string {
  return Object.entries(object)
    .flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map(
        (item) => `${encodeFormText(name)}=${encodeFormText(formText(item))}`,
      ),
    )
    .join('&');
}
