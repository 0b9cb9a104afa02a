/** Printing of values for people, bounded in depth, entries and length. Runs no getter. */
const DEPTH_MAX = 4;
const ENTRIES_MAX = 100;
const TEXT_MAX = 10_000;

function printString(value) {
  const cut = value.length > TEXT_MAX ? `${value.slice(0, TEXT_MAX)}...` : value;
  return `'${cut.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
}

function printEntries(value, seen, depth) {
  const parts = [];
  for (const key of Reflect.ownKeys(value)) {
    if (Array.isArray(value) && key === 'length') continue;
    const descriptor = Reflect.getOwnPropertyDescriptor(value, key);
    if (descriptor === undefined || !descriptor.enumerable) continue;
    if (parts.length === ENTRIES_MAX) {
      parts.push('...');
      break;
    }
    const text =
      'value' in descriptor ? print(descriptor.value, seen, depth + 1) : '[Getter/Setter]';
    const index = Array.isArray(value) && typeof key === 'string' && /^\d+$/.test(key);
    parts.push(index ? text : `${printKey(key)}: ${text}`);
  }
  return parts;
}

function printKey(key) {
  if (typeof key === 'symbol') return `[${String(key)}]`;
  return /^[A-Za-z_$][\w$]*$/.test(key) ? key : printString(key);
}

function print(value, seen, depth) {
  if (typeof value === 'string') return printString(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return `[Function${value.name ? `: ${value.name}` : ''}]`;
  if (typeof value !== 'object' || value === null)
    return Object.is(value, -0) ? '-0' : String(value);
  if (seen.includes(value)) return '[Circular]';
  if (value instanceof Error) return String(value.stack ?? value.message).slice(0, TEXT_MAX);
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (depth > DEPTH_MAX) return Array.isArray(value) ? '[Array]' : '[Object]';
  return printObject(value, [...seen, value], depth);
}

function printObject(value, seen, depth) {
  if (value instanceof Map || value instanceof Set) {
    const items = [...value].slice(0, ENTRIES_MAX).map((item) => print(item, seen, depth + 1));
    return `${value instanceof Map ? 'Map' : 'Set'}(${value.size}) { ${items.join(', ')} }`;
  }
  if (value instanceof Promise) return 'Promise {}';
  if (ArrayBuffer.isView(value)) {
    const bytes = new Uint8Array(value.buffer, value.byteOffset, Math.min(value.byteLength, 50));
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
    return `<${value.constructor?.name ?? 'ArrayBuffer'} ${hex}${value.byteLength > 50 ? ' ...' : ''}>`;
  }
  const parts = printEntries(value, seen, depth);
  if (Array.isArray(value)) return parts.length === 0 ? '[]' : `[ ${parts.join(', ')} ]`;
  return parts.length === 0 ? '{}' : `{ ${parts.join(', ')} }`;
}

function inspect(value) {
  return print(value, [], 0);
}

function formatOne(directive, value) {
  if (directive === '%s') return typeof value === 'string' ? value : inspect(value);
  if (directive === '%d' || directive === '%f') return String(Number(value));
  if (directive === '%i') return String(Number.parseInt(value, 10));
  if (directive === '%j') return JSON.stringify(value) ?? 'undefined';
  return inspect(value);
}

/** printf-like, as Node's `util.format`: `%s %d %i %f %j %o %O %%`; the rest is appended. */
function format(...parts) {
  if (typeof parts[0] !== 'string') {
    return parts.map((part) => (typeof part === 'string' ? part : inspect(part))).join(' ');
  }
  const rest = parts.slice(1);
  const head = parts[0].replace(/%[sdifjoO%]/g, (directive) => {
    if (directive === '%%') return '%';
    return rest.length === 0 ? directive : formatOne(directive, rest.shift());
  });
  return [head, ...rest.map((part) => (typeof part === 'string' ? part : inspect(part)))].join(' ');
}

exports.inspect = inspect;
exports.format = format;
