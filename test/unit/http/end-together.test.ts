import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { endTogether } from '../../../data-plane/end-together.ts';
import { listen } from '../../../shared/process/listen.ts';

describe('answers that are ended together', () => {
  let server: Server;
  let port: number;
  /** Whether an answer had ended when it was asked to, and a turn later. */
  let ended: boolean[];

  beforeEach(async () => {
    ended = [];
    server = createServer(async (req, res) => {
      res.writeHead(200, { 'content-length': 2 });
      endTogether(res, (req.url ?? '').slice(1), 'latin1');
      if (req.url === '/gone') req.socket.resetAndDestroy();
      ended.push(res.writableEnded);
      await turn();
      ended.push(res.writableEnded);
    });
    port = await listen(server, 0, '127.0.0.1');
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it('end with their turn', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/ab`);
    expect(await answer.text()).to.equal('ab');
    expect(ended).to.deep.equal([false, true]);
  });

  it('keep the order of the requests of a connection', async () => {
    const socket = connect(port, '127.0.0.1');
    const request = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`;
    socket.write(request('/ab') + request('/cd') + request('/ef', 'connection: close\r\n'));
    const bodies = (await text(socket)).match(/\r\n\r\n../g)?.map((found) => found.slice(4));
    expect(bodies).to.deep.equal(['ab', 'cd', 'ef']);
  });

  it('are nothing to a caller who has gone', async () => {
    const gone = await fetch(`http://127.0.0.1:${port}/gone`).catch(
      (error: Error) => error.message,
    );
    expect(gone).to.equal('fetch failed');
    expect(await (await fetch(`http://127.0.0.1:${port}/cd`)).text()).to.equal('cd');
  });
});
