import { useEffect, useState } from "react";
import { CONNECTING, type Link, nextLink, retryDelayMs, SILENCE_MS, type StaleLink, stalest } from "../state/link.ts";
import { type CallError, toCallError } from "./call-error.ts";
import { Observable, useObservable } from "./observable.ts";
import { sessionEnded } from "./session-end.ts";
import { looked, untilLooked } from "./visibility.ts";

/** A stream of the server to follow for as long as it is wanted. */
export interface Followed<M> {
  /** Open it where it is to go on. */
  readonly open: (signal: AbortSignal) => AsyncIterable<M>;
  readonly onMessage: (message: M) => void;
  /** Whether more must come before what is shown is as it is now; asked after each message. */
  readonly isBehind?: () => boolean;
  /** How long it may say nothing before it is taken for dead; null for one that may be quiet as long as it likes. */
  readonly silenceMs?: number | null;
  /** Whether the part of the page that shows it says itself how it fares. */
  readonly tellsItself?: boolean;
  /** Learn of an end; answers whether to try again. */
  readonly onEnd?: (error: CallError) => boolean;
}

/** A stream that is followed. */
export interface Following {
  readonly link: Observable<Link>;
  readonly stop: () => void;
}

const IDLE = new Observable<Link>(CONNECTING);

/** The stream of the page that has been stale for longest; null when none is. */
export const stale = new Observable<StaleLink | null>(null);
const counted = new Set<Observable<Link>>();

/** Have a stream count for what the page says of all of them. Answers how to end that. */
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

/** Follow a stream: it is opened again after every end, with growing pauses, until it is stopped. */
export function follow<M>(followed: Followed<M>): Following {
  const stopper = new AbortController();
  const link = new Observable<Link>(CONNECTING);
  const forget = followed.tellsItself === true ? () => {} : count(link);
  run(followed, link, stopper.signal)
    .catch(() => {
      // Only by stop(): nothing is left to tell.
    })
    .finally(forget);
  return { link, stop: () => stopper.abort() };
}

async function run<M>(followed: Followed<M>, link: Observable<Link>, signal: AbortSignal): Promise<void> {
  let attempt = 0;
  while (!signal.aborted) {
    await untilLooked(signal);
    const ended = await once(followed, signal, () => {
      attempt = 0;
      link.set(nextLink(link.value, { kind: "message", isBehind: followed.isBehind?.() ?? false }));
    });
    if (signal.aborted) return;
    const why = ended?.message ?? "The page was not looked at.";
    // What is not there, or cannot be, is not stale, where nothing beside it says why.
    const isNothing = ended?.kind === "missing" || ended?.kind === "invalid";
    if (followed.tellsItself === true || !isNothing)
      link.set(nextLink(link.value, { kind: "ended", nowMs: Date.now(), why }));
    // Closed because the page was not looked at: nothing is wrong, and it goes on at once when it is again.
    if (ended === null) continue;
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
  const { silenceMs = SILENCE_MS } = followed;
  let silence = 0;
  const heard = () => {
    window.clearTimeout(silence);
    if (silenceMs !== null) silence = window.setTimeout(close, silenceMs);
  };
  try {
    heard();
    for await (const message of followed.open(opening.signal)) {
      heard();
      followed.onMessage(message);
      onLife();
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

/** Follow a stream while a component is shown. `key` names the stream: another one is opened when it changes. */
export function useStream<M>(key: string, followed: () => Followed<M> | null): Link {
  const [following, setFollowing] = useState<Following | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for what the stream is opened with.
  useEffect(() => {
    const wanted = followed();
    if (wanted === null) return;
    const started = follow(wanted);
    setFollowing(started);
    return () => started.stop();
  }, [key]);
  return useObservable(following?.link ?? IDLE);
}
