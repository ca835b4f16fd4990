import { useEffect, useState } from "react";
import { exactTime, relativeTime, relativeTimeLastsMs } from "../state/time-words.ts";

/** A relative time with the exact one on hover. "-" for none. */
export function Time({ ms }: { readonly ms: number | null | undefined }) {
  const nowMs = useNow(ms ?? null);
  if (ms === null || ms === undefined) return <span className="soft">-</span>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={exactTime(ms)}>
      {relativeTime(ms, nowMs)}
    </time>
  );
}

/** An exact time followed by the relative one. */
export function ExactTime({ ms }: { readonly ms: number | null | undefined }) {
  if (ms === null || ms === undefined) return <span className="soft">-</span>;
  return (
    <span>
      {exactTime(ms)}{" "}
      <span className="soft">
        (<Time ms={ms} />)
      </span>
    </span>
  );
}

/**
 * The current time, updated whenever the text of a relative time to `atMs` can
 * change.
 */
function useNow(atMs: number | null): number {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    if (atMs === null) return;
    let timer = 0;
    const wait = () => {
      timer = window.setTimeout(
        () => {
          setNowMs(Date.now());
          wait();
        },
        relativeTimeLastsMs(atMs, Date.now()),
      );
    };
    wait();
    return () => window.clearTimeout(timer);
  }, [atMs]);
  // Use the current clock for a time that is later than the last tick.
  return atMs !== null && atMs > nowMs ? Date.now() : nowMs;
}
