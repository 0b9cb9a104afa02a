/**
 * An answer with its tripwire: reports values that the destination sends back, and masks them where the
 * proxy says so and the bytes are not compressed.
 */
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { LeakTripwire } from '../../shared/api/proxies.ts';
import { DestinationBody } from './destination-body.ts';
import type { DestinationAnswer } from './exchange.ts';
import { headerOf } from './headers.ts';
import { MaskingStream, Needles } from './tripwire.ts';

/** Where values were seen; a label of the metric. */
export type LeakPlace = 'headers' | 'body';
export type LeakReport = (place: LeakPlace, count: number) => void;

/** Of a compressed body, decoded: a bomb is 165 bytes. */
const DECODED_BYTES_MAX = 10 * 1024 * 1024;
/** What may wait to be decoded; more than that is looked at no further. */
const WAITING_BYTES_MAX = 1024 * 1024;

const DECODERS = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  br: createBrotliDecompress,
  deflate: createInflate,
} as const;

/** The answer to go on with. Nothing is looked for without `secrets` or with the tripwire off. */
export function watchAnswer(
  answer: DestinationAnswer,
  secrets: readonly string[],
  tripwire: LeakTripwire,
  report: LeakReport,
): DestinationAnswer {
  if (tripwire === 'off' || secrets.length === 0) return answer;
  const needles = new Needles(secrets);
  const masks = tripwire === 'redact';
  const headers = watchHeaders(answer.headers, needles, masks, report);
  const coding = headerOf(answer.headers, 'content-encoding')?.trim().toLowerCase() ?? 'identity';
  const body =
    coding === 'identity' || coding === ''
      ? watchPlain(answer.body, needles, masks, report)
      : watchCoded(answer.body, needles, coding, report);
  return { status: answer.status, headers, body };
}

function watchHeaders(
  headers: string[],
  needles: Needles,
  masks: boolean,
  report: LeakReport,
): string[] {
  let count = 0;
  // Names too: a star may be in one.
  const masked = headers.map((text, index) => {
    const found = needles.maskText(text);
    count += found.count;
    return masks && !isFraming(headers, index) ? found.text : text;
  });
  if (count > 0) report('headers', count);
  return masked;
}

/** How long an answer is stays as it is, whatever the digits: masked, nobody could read the rest. */
function isFraming(headers: readonly string[], index: number): boolean {
  const name = (headers[index - (index % 2)] ?? '').toLowerCase();
  return name === 'content-length' || name === 'transfer-encoding';
}

/** Every byte is looked at before it goes on; masked ones keep their place. */
function watchPlain(
  body: DestinationBody,
  needles: Needles,
  masks: boolean,
  report: LeakReport,
): DestinationBody {
  const stream = new MaskingStream(needles);
  return through(body, {
    piece(chunk) {
      const out = stream.push(chunk);
      return masks ? out : chunk;
    },
    end() {
      const rest = stream.end();
      if (stream.count > 0) report('body', stream.count);
      return masks ? rest : undefined;
    },
  });
}

/** The bytes go on as they are; what they decode to is looked at beside. */
function watchCoded(
  body: DestinationBody,
  needles: Needles,
  coding: string,
  report: LeakReport,
): DestinationBody {
  if (!Object.hasOwn(DECODERS, coding)) return body;
  const decoder = DECODERS[coding as keyof typeof DECODERS]();
  const stream = new MaskingStream(needles);
  let decoded = 0;
  decoder.on('data', (chunk: Buffer) => {
    decoded += chunk.length;
    stream.push(chunk);
    if (decoded > DECODED_BYTES_MAX) decoder.destroy();
  });
  // What was found until then counts, also of a body that does not decode to its end.
  decoder
    .on('error', () => undefined)
    .on('close', () => {
      stream.end();
      if (stream.count > 0) report('body', stream.count);
    });
  return through(body, {
    piece(chunk) {
      if (decoder.writableLength > WAITING_BYTES_MAX) decoder.destroy();
      else if (!decoder.destroyed) decoder.write(chunk);
      return chunk;
    },
    end() {
      if (!decoder.destroyed) decoder.end();
      return undefined;
    },
  });
}

interface Passage {
  piece(chunk: Buffer): Buffer;
  /** Called once, also when the body breaks off. */
  end(): Buffer | undefined;
}

/** The same body, each piece of it passed through; asks for no more than is taken. */
function through(source: DestinationBody, { piece, end }: Passage): DestinationBody {
  let isPaused = false;
  const body = new DestinationBody({
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
      source.resume();
    },
    abort: () => source.abort(),
  });
  source.deliverTo({
    data(chunk) {
      const out = piece(chunk);
      if (out.length > 0) body.push(out);
      return !isPaused;
    },
    end() {
      const rest = end();
      if (rest !== undefined && rest.length > 0) body.push(rest);
      body.end();
    },
    fail(error) {
      end();
      body.fail(error);
    },
  });
  return body;
}
