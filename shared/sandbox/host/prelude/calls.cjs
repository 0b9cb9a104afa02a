/**
 * Calls out of the sandbox: text to the gateway, a promise of its answer. The gateway bounds them; the
 * same bounds here make a caller wait for its turn and say what is wrong.
 */
const { get, set, delete: remove, clear } = Map.prototype;
const { apply } = Reflect;
const { parse } = JSON;
const ErrorClass = Error;
const PromiseClass = Promise;

/** Which services this run has: `{fetch, bt}`. */
const { services } = internal;
const waiting = new Map();
let desks = newDesks();

function newDesks() {
  const desk = () => ({
    __proto__: null,
    calls: 0,
    in_flight: 0,
    first: undefined,
    last: undefined,
  });
  return { __proto__: null, fetch: desk(), bt: desk() };
}

/** Another run has this context now: nothing of the one before is answered or started any more. */
internal.onReset(() => {
  apply(clear, waiting, []);
  desks = newDesks();
});

function failure(message, code) {
  const error = new ErrorClass(message);
  if (code !== undefined) error.code = code;
  return error;
}

/** `undefined` when the call may be made; otherwise why not. */
function whyRefused(service, text, desk) {
  if (desk === undefined || services[service] !== true) {
    return failure(`${service} is not available here.`, 'NOT_AVAILABLE');
  }
  const { calls_max } = limits.calls[service];
  if (desk.calls >= calls_max) {
    return failure(`At most ${calls_max} calls of ${service} in one run.`, 'TOO_MANY_CALLS');
  }
  if (text.length > limits.call_request_bytes_max) {
    return failure('The request is too large.', 'TOO_LARGE');
  }
  return undefined;
}

function start(entry) {
  const number = native('call', entry.service, entry.text);
  entry.text = '';
  if (number === undefined) {
    entry.over = true;
    entry.reject(failure('The call failed.'));
    return;
  }
  entry.number = +number;
  entry.desk.in_flight += 1;
  apply(set, waiting, [entry.number, entry]);
}

function startNext(desk, service) {
  while (desk.first !== undefined && desk.in_flight < limits.calls[service].in_flight_max) {
    const entry = desk.first;
    desk.first = entry.next;
    if (desk.first === undefined) desk.last = undefined;
    if (!entry.over) start(entry);
  }
}

function enqueue(desk, entry) {
  if (desk.last === undefined) desk.first = entry;
  else desk.last.next = entry;
  desk.last = entry;
}

function finish(entry) {
  entry.over = true;
  apply(remove, waiting, [entry.number]);
  entry.desk.in_flight -= 1;
}

function cancel(entry) {
  if (entry.over) return;
  if (entry.number === 0) {
    entry.over = true;
    entry.text = '';
    return;
  }
  // The number may be another run's by now, or answered.
  if (apply(get, waiting, [entry.number]) !== entry) return;
  native('cancel', entry.number);
  finish(entry);
  startNext(entry.desk, entry.service);
}

/**
 * Calls a service with a JSON text. `answer`: its JSON text, or an Error with `message` and `code`.
 * `cancel`: nobody waits any more; the answer then never settles.
 */
function call(service, text) {
  const desk = desks[service];
  const refused = whyRefused(service, text, desk);
  if (refused !== undefined) {
    return {
      answer: (async () => {
        throw refused;
      })(),
      cancel() {},
    };
  }
  desk.calls += 1;
  const entry = { __proto__: null, service, text, desk, number: 0, over: false, next: undefined };
  const answer = new PromiseClass((resolve, reject) => {
    entry.resolve = resolve;
    entry.reject = reject;
  });
  enqueue(desk, entry);
  startNext(desk, service);
  return { answer, cancel: () => cancel(entry) };
}

/** The host brings an answer. */
function settle(number, ok, text) {
  const entry = apply(get, waiting, [number]);
  if (entry === undefined) return;
  finish(entry);
  startNext(entry.desk, entry.service);
  if (ok) entry.resolve(text);
  else {
    const { message, code } = parse(text);
    entry.reject(failure(message, code));
  }
}

internal.answer = settle;
exports.call = call;
exports.services = services;
