/**
 * nginx as a front of the gateway, as forgiving as it can be made, with connections that it keeps: and
 * what it says it has sent, which is the truth that the destination is held against.
 */
import type { Expected } from './comparison.ts';

/** What nginx says of one request that it has read. */
export interface SentByNginx extends Expected {
  /** It was handed on, and an answer began. */
  readonly isAnswered: boolean;
  /** What the answer says it is the answer to. */
  readonly seen: string;
}

/** How it hands bodies on; `body` is logged only where it has the whole. */
export const FRONTS = {
  'reads whole bodies': 'proxy_request_buffering on;',
  'passes bodies on as they come': 'proxy_request_buffering off;',
} as const;

/** For the block `http`. Kept connections are few, so that requests of many callers share each. */
export function frontOf(folder: string, port: number, settings: string): string {
  return `
  log_format sent escape=json '{"method":"$request_method","target":"$request_uri",'
    '"body":"$request_body","upstream":"$upstream_status","seen":"$upstream_http_x_seen"}';
  access_log ${folder}/access.log sent;
  ignore_invalid_headers off; underscores_in_headers on; merge_slashes off;
  client_header_buffer_size 32k; large_client_header_buffers 8 32k;
  client_body_buffer_size 64k; client_max_body_size 8m;
  lingering_timeout 1s; keepalive_timeout 5s;
  upstream sallyport { server 127.0.0.1:${port} max_fails=0; keepalive 4; }
  server {
    listen unix:${folder}/front;
    location / {
      proxy_pass http://sallyport; proxy_http_version 1.1; proxy_next_upstream off;
      proxy_set_header Connection ""; proxy_set_header Host $http_host;
      ${settings}
    }
  }`;
}

/** Its access log: what was handed on. */
export function readSent(log: string, settings: string): SentByNginx[] {
  const hasBodies = settings === FRONTS['reads whole bodies'];
  return log
    .split('\n')
    .filter((line) => line !== '')
    .map(
      (line) =>
        JSON.parse(line) as Record<'method' | 'target' | 'body' | 'upstream' | 'seen', string>,
    )
    .filter(({ upstream }) => upstream !== '')
    .map(({ method, target, body, upstream, seen }) => ({
      ...{ method, target, seen, isAnswered: upstream === '200' && seen !== '' },
      body: hasBodies ? body : undefined,
    }));
}
