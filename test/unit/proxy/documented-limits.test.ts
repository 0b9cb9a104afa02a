/** docs/proxies.md against the code: a number or a name there that is not true any more fails here. */
import { expect } from 'chai';
import { Registry } from 'prom-client';
import {
  BROUGHT_OUT_BYTES_MAX,
  BROUGHT_OUT_TEXTS_MAX,
} from '../../../data-plane/proxy/brought-out.ts';
import { PROGRESS_BYTES_MIN, PROGRESS_MS } from '../../../data-plane/proxy/destination-body.ts';
import { ANSWER_WITHIN_MS, INFORMATIONAL_MAX } from '../../../data-plane/proxy/exchange.ts';
import { WAITING_MAX } from '../../../data-plane/proxy/places.ts';
import { FORM_FIELDS_MAX } from '../../../data-plane/proxy/transform-form.ts';
import { TRANSFORMED_BYTES_MAX } from '../../../data-plane/proxy/whole-answer.ts';
import { LEAK_TRIPWIRES } from '../../../shared/api/proxies.ts';
import { Code } from '../../../shared/api/scripts.ts';
import { CONNECTIONS_MAX } from '../../../shared/egress/create-egress.ts';
import { DESTINATION_URL_LENGTH_MAX } from '../../../shared/egress/destination-url.ts';
import {
  DETOKENIZATION_EXPRESSIONS_MAX,
  DETOKENIZATION_OUTPUT_MAX,
} from '../../../shared/expressions/limits.ts';
import { LISTENER_OPTIONS } from '../../../shared/http/listener.ts';
import { TARGET_LENGTH_MAX } from '../../../shared/http/request-target.ts';
import { BODY_LIMITS } from '../../../shared/http/slow-bodies.ts';
import { HEADERS_MAX } from '../../../shared/http/strict-request.ts';
import { JSON_MEMBERS_MAX } from '../../../shared/json-scan.ts';
import { createProxyMetrics } from '../../../shared/observability/proxy-metrics.ts';
import { DETOKENIZED_TOKENS_MAX } from '../../../shared/tokens/detokenize.ts';
import {
  bytes,
  constantIn,
  count,
  DOCUMENT_LINES_MAX,
  read,
  seconds,
  tableBelow,
} from '../documented-limits.ts';

const DOCUMENT = read('docs/proxies.md');
const inProxy = (file: string, name: string): number =>
  constantIn(`data-plane/proxy/${file}.ts`, name);

const LIMITS = {
  'characters of a destination URL': count(DESTINATION_URL_LENGTH_MAX),
  "characters of a transform's code": count(Number(Reflect.get(Code, 'maxLength'))),
  'request line and headers of a request': bytes(LISTENER_OPTIONS.maxHeaderSize),
  'headers of a request': count(HEADERS_MAX),
  "characters of a request's target": count(TARGET_LENGTH_MAX),
  'characters of path and query at the destination': count(
    inProxy('destination', 'TARGET_LENGTH_MAX'),
  ),
  'a body that is read, packed and unpacked': bytes(inProxy('incoming-bytes', 'BODY_BYTES_MAX')),
  'until all of a body that is read has come': seconds(BODY_LIMITS.wholeMs),
  [`progress of a body that streams, in each ${seconds(BODY_LIMITS.progressMs)}`]: bytes(
    BODY_LIMITS.progressBytes,
  ),
  'distinct tokens of one request': count(DETOKENIZED_TOKENS_MAX),
  'expressions of one request': count(DETOKENIZATION_EXPRESSIONS_MAX),
  'what expressions add to a body': bytes(DETOKENIZATION_OUTPUT_MAX),
  'members of a JSON body with a request transform': count(JSON_MEMBERS_MAX),
  'fields of a form with a request transform': count(FORM_FIELDS_MAX),
  "until the destination's answer begins": seconds(ANSWER_WITHIN_MS),
  [`progress of an answer, in each ${seconds(PROGRESS_MS)}`]: bytes(PROGRESS_BYTES_MIN),
  'an answer that is needed whole, packed and unpacked': bytes(TRANSFORMED_BYTES_MAX),
  'time for an answer that is needed whole': seconds(
    PROGRESS_MS * inProxy('whole-answer', 'PERIODS_MAX'),
  ),
  'interim answers (1xx) of a destination': count(INFORMATIONAL_MAX),
  'requests of a tenant at one destination': count(CONNECTIONS_MAX),
  'requests of a tenant that wait, at all destinations': count(WAITING_MAX),
  'headers that a transform returns': bytes(inProxy('transform-headers', 'LENGTH_MAX')),
  'characters of a value that the tripwire looks for': count(
    inProxy('brought-out', 'TEXT_LENGTH_MIN'),
  ),
  'values that the tripwire looks for': count(BROUGHT_OUT_TEXTS_MAX),
  'bytes of them in all': bytes(BROUGHT_OUT_BYTES_MAX),
};

describe('docs/proxies.md', () => {
  it('has every limit with the number that the code has', () => {
    const documented = tableBelow(DOCUMENT, 'Limits').map(([name, value]) => [name, value]);
    expect(documented).to.deep.equal(Object.entries(LIMITS));
  });

  it('names every header that requests are read for', () => {
    const list = /^const HEADERS = \[([^\]]+)\]/m.exec(
      read('data-plane/proxy/read-request.ts'),
    )?.[1];
    const names = Array.from(list?.matchAll(/'([a-z-]+)'/g) ?? [], ([, name]) => name);
    const documented = tableBelow(DOCUMENT, 'Headers').map(([name = '']) =>
      name.replaceAll('`', '').toLowerCase(),
    );
    expect(names).not.to.have.length(0);
    expect(documented).to.have.members([...names, 'bt-api-key']);
  });

  it('names every setting of the tripwire, and its metrics', () => {
    const section = DOCUMENT.split('## The tripwire\n')[1]?.split('\n## ')[0] ?? '';
    for (const setting of LEAK_TRIPWIRES) expect(section).to.contain(`\`${setting}\``);
    const registry = new Registry();
    createProxyMetrics({ registry });
    const named = Array.from(section.matchAll(/`(sallyport_\w+)`/g), ([, name = '']) => name);
    expect(named).to.have.length(2);
    for (const name of named) expect(registry.getSingleMetric(name), name).not.to.equal(undefined);
  });

  it('stays short', () => {
    expect(DOCUMENT.trimEnd().split('\n')).to.have.length.at.most(DOCUMENT_LINES_MAX);
  });
});
