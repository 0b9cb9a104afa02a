// Preloaded before any TypeScript is read (`node --import`), because an older Node would otherwise
// fail with a riddle about unknown file extensions. Plain JavaScript that Node 18 can run.
import { existsSync } from 'node:fs';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major < 24 || (major === 24 && minor < 4)) {
  const isInstalled = existsSync(new URL('../node_modules/pino', import.meta.url));
  process.stderr.write(
    `Sallyport runs on Node 24; this is Node ${process.versions.node}.\n` +
      (isInstalled
        ? 'On Linux (glibc, x64 or arm64) `npm ci` brings it along: run it through npm (`npm start`).\n'
        : 'Run `npm ci` first: on Linux (glibc, x64 or arm64) it brings it along.\n') +
      'On other systems install Node 24 or newer first: https://nodejs.org\n',
  );
  process.exit(1);
}
