/** Sends connections full of requests as they are, cut where they say, and reads to the end. */
import { connect, type NetConnectOpts } from 'node:net';
import { type Connection, isWhole } from './requests.ts';

/** A length that was damaged may swallow the request that ends the connection: nothing more will come. */
const QUIET_MS = 1_500;

/** Everything that came back until the other side ended, or had nothing more to say. */
export function converse(to: NetConnectOpts, connection: Connection): Promise<string> {
  const { bytes, cuts } = connection;
  return new Promise((resolve) => {
    let text = '';
    const pieces = [0, ...cuts].map((cut, index) => bytes.slice(cut, cuts[index]));
    const socket = connect(to, writeNext);
    function writeNext(): void {
      const piece = pieces.shift();
      if (piece === undefined || socket.destroyed) return;
      socket.write(piece, 'latin1');
      setImmediate(writeNext);
    }
    socket.setNoDelay().setEncoding('latin1');
    // Whole ones are waited for, however slow the machine is.
    if (!isWhole(connection)) socket.setTimeout(QUIET_MS, () => socket.destroy());
    socket.on('data', (piece: string) => {
      text += piece;
    });
    // A reset after an answer is an end; a missing answer fails the test.
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text));
  });
}
