/** A body on its way, each piece of which passes something that may look at it or change it. */
import { DestinationBody } from './destination-body.ts';

export interface Passage {
  /** What goes on in place of a piece; may be empty. */
  piece(chunk: Buffer): Buffer;
  /** What goes on behind the last piece. Called once; not whole: the body broke off. */
  end(isWhole: boolean): Buffer | undefined;
}

/** Asks for no more than is taken. */
export function through(source: DestinationBody, { piece, end }: Passage): DestinationBody {
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
      const rest = end(true);
      if (rest !== undefined && rest.length > 0) body.push(rest);
      body.end();
    },
    fail(error) {
      end(false);
      body.fail(error);
    },
  });
  return body;
}
