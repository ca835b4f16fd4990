import { CONNECTING, type Link, nextLink, retryDelayMs, SILENCE_MS } from "../state/link.ts";
import { type CallError, toCallError } from "./call-error.ts";
import { Observable } from "./observable.ts";
import { sessionEnded } from "./session-end.ts";
import { looked, untilLooked } from "./visibility.ts";

/** A stream of the server that is to be followed for as long as it is wanted. */
export interface Followed<M> {
  /** Open it where it is to go on. */
  readonly open: (signal: AbortSignal) => AsyncIterable<M>;
  readonly onMessage: (message: M) => void;
  /** Learn of an end; answers whether to try again. */
  readonly onEnd?: (error: CallError) => boolean;
}

/** A stream that is followed. */
export interface Following {
  readonly link: Observable<Link>;
  readonly stop: () => void;
}

/** Follow a stream: it is opened again after every end, with growing pauses, until it is stopped. */
export function follow<M>(followed: Followed<M>): Following {
  const stopper = new AbortController();
  const link = new Observable<Link>(CONNECTING);
  run(followed, link, stopper.signal).catch(() => {
    // Only by stop(): nothing is left to tell.
  });
  return { link, stop: () => stopper.abort() };
}

async function run<M>(followed: Followed<M>, link: Observable<Link>, signal: AbortSignal): Promise<void> {
  let attempt = 0;
  while (!signal.aborted) {
    await untilLooked(signal);
    const ended = await once(followed, signal, () => {
      attempt = 0;
      link.set(nextLink(link.value, { kind: "message", nowMs: Date.now() }));
    });
    if (signal.aborted) return;
    // Closed because the page was not looked at: nothing is wrong, and it goes on at once when it is again.
    if (ended === null) continue;
    link.set(nextLink(link.value, { kind: "ended", nowMs: Date.now(), why: ended.message }));
    if (ended.kind === "signed-out") sessionEnded.set(ended);
    if (followed.onEnd?.(ended) === false) return;
    attempt += 1;
    await pause(retryDelayMs(attempt, Math.random()), signal);
  }
}

/** One opening of the stream. Answers why it ended; null when the page closed it by itself. */
async function once<M>(followed: Followed<M>, signal: AbortSignal, onLife: () => void): Promise<CallError | null> {
  const opening = new AbortController();
  const close = () => opening.abort(signal.reason);
  signal.addEventListener("abort", close);
  const stopLooking = looked.subscribe(() => {
    if (!looked.value) close();
  });
  let silence = 0;
  const heard = () => {
    window.clearTimeout(silence);
    silence = window.setTimeout(close, SILENCE_MS);
  };
  try {
    heard();
    for await (const message of followed.open(opening.signal)) {
      heard();
      onLife();
      followed.onMessage(message);
    }
    return { reason: "ENDED", message: "The server ended the stream.", kind: "away" };
  } catch (cause) {
    if (!looked.value) return null;
    return toCallError(cause);
  } finally {
    window.clearTimeout(silence);
    stopLooking();
    signal.removeEventListener("abort", close);
    opening.abort();
  }
}

/** Wait, or less when the browser says that it has a network again. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      window.clearTimeout(timer);
      window.removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = window.setTimeout(end, ms);
    window.addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}
