import { useEffect, useState } from "react";
import { exactTime, relativeTime, relativeTimeLastsMs } from "../state/time-words.ts";

/** A time, relative; pointing at it tells it exactly. "-" for none. */
export function Time({ ms }: { readonly ms: number | null | undefined }) {
  const nowMs = useNow(ms ?? null);
  if (ms === null || ms === undefined) return <span className="soft">-</span>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={exactTime(ms)}>
      {relativeTime(ms, nowMs)}
    </time>
  );
}

/** A time exactly, with the relative one after it, for pages that have the room. */
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

/** The present, again whenever a relative time to `atMs` may read differently. */
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
  // A time that changed is told by the present clock, not by that of the last tick.
  return atMs !== null && atMs > nowMs ? Date.now() : nowMs;
}
