/** What a machine cannot run is skipped loudly, never in silence. */

/**
 * Skips the test or suite of `context` and says why. With `CI` set it fails instead: the machine of a
 * CI run must have what tests need (`.ci/run` brings it), or they would be left out unnoticed.
 */
export function skipLoudly(context: Mocha.Context, reason: string): never {
  if (process.env.CI) throw new Error(`CI is set, and ${reason}`);
  return skipAnywhere(context, reason);
}

/** For tests that look at processes through /proc. */
export function skipUnlessLinux(context: Mocha.Context, reason: string): void {
  if (process.platform !== 'linux') skipLoudly(context, reason);
}

/** As `skipLoudly`, for what a machine of CI may be denied as well: what takes root, a mount. */
export function skipAnywhere(context: Mocha.Context, reason: string): never {
  process.stderr.write(`\n!! NOT RUN, ${context.test?.fullTitle()}: ${reason}\n`);
  return context.skip();
}
