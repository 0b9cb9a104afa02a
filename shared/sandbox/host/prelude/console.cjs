/** `console`: lines to the host, which keeps a bounded number of bytes. Never an object crosses. */
const { format, inspect } = require('inspect');
let left = limits.console_bytes_max;
let linesLeft = limits.console_lines_max;
internal.onReset(() => {
  left = limits.console_bytes_max;
  linesLeft = limits.console_lines_max;
});

function write(level, parts) {
  if (left <= 0 || linesLeft <= 0) return;
  let line;
  try {
    line = format(...parts);
  } catch {
    line = '[unprintable]';
  }
  line = line.slice(0, left);
  left -= line.length + 1;
  linesLeft -= 1;
  native('log', level, line);
}

const console = {};
for (const level of ['log', 'info', 'warn', 'error', 'debug', 'trace']) {
  console[level] = (...parts) => write(level, parts);
}
console.dir = (value) => write('log', [inspect(value)]);
console.table = console.dir;
console.assert = (condition, ...parts) => {
  if (!condition) write('error', ['Assertion failed', ...parts]);
};
for (const name of ['group', 'groupEnd', 'time', 'timeEnd', 'count', 'clear']) {
  console[name] = () => undefined;
}
exports.console = console;
