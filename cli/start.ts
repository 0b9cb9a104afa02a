/** `sallyport start`: the same as `npm start`. */
import { Command } from 'commander';
import { start } from '../embedded/start.ts';

/** `finish` gets the exit code when Sallyport has ended. */
export function startCommand(source: NodeJS.ProcessEnv, finish: (code: number) => void): Command {
  return new Command('start')
    .description('run everything in one place until SIGTERM')
    .action(async () => finish(await start(source)));
}
