import { useEffect, useEffectEvent, useState } from "react";
import { CONNECTING, type Link, nextLink, retryDelayMs, SILENCE_MS, type StaleLink, stalest } from "../state/link.ts";
import { type CallError, toCallError } from "./call-error.ts";
import { Observable, useObservable } from "./observable.ts";
import { sessionEnded } from "./session-end.ts";
import { looked, untilScanned } from "./visibility.ts";

/** A stream of the server to keep open. */
export interface Followed<M> {
  /** Open the stream at the position to resume from. */
  readonly open: (signal: AbortSignal) => AsyncIterable<M>;
  readonly onMessage: (message: M) => void;
  /** Whether more messages must arrive before the display is current; called after each message. */
  readonly isBehind?: () => boolean;
  /** How long the stream can be silent before it counts as dead; null for a stream that can be silent forever. */
  readonly silenceMs?: number | null;
  /** Whether the component that shows the data also shows the stream's status. */
  readonly tellsItself?: boolean;
  /** Called when the stream ends; returns whether to retry. */
  readonly onEnd?: (error: CallError) => boolean;
}

/** A stream that is followed. */
export interface Following {
  readonly link: Observable<Link>;
  readonly stop: () => void;
}

/** The parts of a browser's window that streams need. */
export type FollowingWindow = Pick<
  Window & typeof globalThis,
  "setTimeout" | "clearTimeout" | "addEventListener" | "removeEventListener" | "performance"
>;

/**
 * How long messages are handled in one task. Reading a message that has already arrived takes no separate task, so
 * without a limit the page handles a backlog, such as a whole snapshot, before it reacts to the user again.
 */
const SLICE_MS = 8;

const IDLE = new Observable<Link>(CONNECTING);

/** The stream that has been stale for longest; null when none is. */
export const stale = new Observable<StaleLink | null>(null);
const counted = new Set<Observable<Link>>();

/** Include a stream in the page's overall status. Returns a function that removes it. */
function count(link: Observable<Link>): () => void {
  const tell = () => stale.set(stalest([...counted].map(({ value }) => value)));
  counted.add(link);
  const stop = link.subscribe(tell);
  return () => {
    stop();
    counted.delete(link);
    tell();
  };
}

/** Keep a stream open: reopen it after every end, with growing pauses, until it is stopped. */
export function follow<M>(followed: Followed<M>, page: FollowingWindow = window): Following {
  const stopper = new AbortController();
  const link = new Observable<Link>(CONNECTING);
  const forget = followed.tellsItself === true ? () => {} : count(link);
  run(followed, link, stopper.signal, page)
    .catch(() => {
      // Ignore the rejection, because it only happens when stop() aborts.
    })
    .finally(forget);
  return { link, stop: () => stopper.abort() };
}

async function run<M>(
  followed: Followed<M>,
  link: Observable<Link>,
  signal: AbortSignal,
  page: FollowingWindow,
): Promise<void> {
  let attempt = 0;
  while (!signal.aborted) {
    await untilScanned(signal);
    const onLife = () => {
      attempt = 0;
      link.set(nextLink(link.value, { kind: "message", isBehind: followed.isBehind?.() ?? false }));
    };
    const ended = await once(followed, signal, { onLife, page });
    if (signal.aborted) return;
    const why = ended?.message ?? "The page was hidden.";
    // A missing or invalid object is an error to show, so it does not mark the page as stale. A component that shows
    // the status itself always gets the reason.
    const isNothing = ended?.kind === "missing" || ended?.kind === "invalid";
    if (followed.tellsItself === true || !isNothing)
      link.set(nextLink(link.value, { kind: "ended", nowMs: Date.now(), why }));
    // The page was hidden and closed the stream. This is not an error, so resume as soon as the page is visible.
    if (ended === null) continue;
    if (ended.kind === "signed-out") sessionEnded.set(ended);
    if (followed.onEnd?.(ended) === false) return;
    attempt += 1;
    await pause(retryDelayMs(attempt, Math.random()), signal, page);
  }
}

/** Open the stream once. Returns why it ended; null when the page closed it. */
async function once<M>(
  followed: Followed<M>,
  signal: AbortSignal,
  { onLife, page }: { readonly onLife: () => void; readonly page: FollowingWindow },
): Promise<CallError | null> {
  const opening = new AbortController();
  const close = () => opening.abort(signal.reason);
  signal.addEventListener("abort", close);
  const stopScanning = looked.subscribe(() => {
    if (!looked.value) close();
  });
  const { silenceMs = SILENCE_MS } = followed;
  let silence = 0;
  const heard = () => {
    page.clearTimeout(silence);
    if (silenceMs !== null) silence = page.setTimeout(close, silenceMs);
  };
  try {
    heard();
    let sliceEndMs = page.performance.now() + SLICE_MS;
    for await (const message of followed.open(opening.signal)) {
      heard();
      followed.onMessage(message);
      onLife();
      if (page.performance.now() < sliceEndMs) continue;
      await nextTask();
      sliceEndMs = page.performance.now() + SLICE_MS;
    }
    return { reason: "ENDED", message: "The server ended the stream.", kind: "away" };
  } catch (cause) {
    if (!looked.value) return null;
    return toCallError(cause);
  } finally {
    page.clearTimeout(silence);
    stopScanning();
    signal.removeEventListener("abort", close);
    opening.abort();
  }
}

/** Let the browser handle input and draw. A message is not delayed in the background, as a timer is. */
function nextTask(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Wait for a time, or until the browser reports that it is online again. */
function pause(ms: number, signal: AbortSignal, page: FollowingWindow): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      page.clearTimeout(timer);
      page.removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = page.setTimeout(end, ms);
    page.addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}

/**
 * Follow a stream while a component is mounted. `key` identifies the stream; when it changes, another stream is
 * opened. `followed` gets the key.
 */
export function useStream<M>(key: string, followed: (key: string) => Followed<M> | null): Link {
  const [following, setFollowing] = useState<Following | null>(null);
  const describe = useEffectEvent(followed);
  useEffect(() => {
    const wanted = describe(key);
    if (wanted === null) return;
    const started = follow(wanted);
    setFollowing(started);
    return () => started.stop();
  }, [key]);
  return useObservable(following?.link ?? IDLE);
}
