/** Addresses in disguise as destinations of one request (attacks C-13): none of them is ever asked. */
import { expect } from 'chai';
import { OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, request, sendRaw } from './raw-client.ts';

describe('addresses in disguise', () => {
  let proxies: Proxies;
  let origin: Origin;
  before(async () => {
    // Nothing is allowed that is not public.
    proxies = await startProxies({ SALLYPORT_EPHEMERAL_PROXY: 'true', SALLYPORT_EGRESS_ALLOW: '' });
    origin = await startOrigin(OK);
  });
  after(async () => {
    await proxies?.stop();
    await origin?.close();
  });

  it('are refused as BT-PROXY-URL, and nothing is connected to', async () => {
    const hosts = [
      ...['2130706433', '0x7f000001', '0177.0.0.1', '017700000001', '127.1', '0x7f.1', '0'],
      ...['0.0.0.0', '[::]', '[::1]', '[::ffff:127.0.0.1]', '[::127.0.0.1]', '[::ffff:a00:1]'],
      ...['[64:ff9b::7f00:1]', '[fd00:ec2::254]', '[fe80::1]', '169.254.169.254', '192.0.0.192'],
      ...['100.100.100.200', '10.0.0.1', '172.16.0.1', '192.168.0.1', '198.18.0.1', '224.0.0.1'],
      ...['240.0.0.1', '255.255.255.255', 'localhost', 'LOCALHOST', 'localhost.', 'x.localhost'],
      ...['metadata.google.internal', '%31%32%37.0.0.1', '127.0.0.1%2f@x.example', 'u:p@x.example'],
      ...['127.0.0.1#@x.example', '127.0.0.1?@x.example'],
    ];
    const urls = hosts.flatMap((host) => [`https://${host}/`, `http://${host}/`]);
    const more = [
      ...[
        'file:///etc/passwd',
        'ftp://x.example/',
        'gopher://x.example/',
        'data:,x',
        '//x.example',
      ],
      ...[
        'javascript:1',
        'https:x.example',
        'http:x.example',
        'http://x.example/',
        'https://',
        ' ',
      ],
      ...[22, 25, 5432, 6379, 0, 65_536].map((port) => `https://x.example:${port}/`),
      ...[`http://127.0.0.1:${origin.port}/`, `http://[::ffff:7f00:1]:${origin.port}/`],
    ];
    const passed: string[] = [];
    for (const url of [...urls, ...more]) {
      const lines = [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-URL: ${url}`, 'Connection: close'];
      const answer = parseAnswer((await sendRaw(proxies.port, request('GET /proxy', lines))).text);
      // Behind a backslash is a path: what counts is the host that was read.
      const wanted = url.includes('\\') ? 502 : 400;
      if (answer.status !== wanted) passed.push(`${url}: ${answer.status}`);
    }
    expect(passed).to.deep.equal([]);
    expect(origin.connections()).to.equal(0);
  });
});
