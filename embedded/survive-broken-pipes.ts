/** `npm start | head` closes our output while we run: nobody reads on, which must not end a vault. */

/** From now on a failed write to stdout or stderr is ignored: there is nobody to tell. */
export function surviveBrokenPipes(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}
