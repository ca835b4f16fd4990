import { QueryClient, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent } from "react";
import { toCallError } from "./call-error.ts";
import { log } from "./log.ts";
import { sessionEnded } from "./session-end.ts";

/**
 * The cache of queries. Queries are refetched when the event log reports a change, never by a timer. Changes to a
 * query that is not on screen are not reported, so such a query is shown from the cache and refetched immediately
 * when it is on screen again.
 */
export const queries = new QueryClient({
  defaultOptions: {
    queries: { retry: 2, staleTime: 0, gcTime: 5 * 60_000, refetchOnWindowFocus: false },
  },
});

// Data from before the log started may have changed unnoticed, so refetch it. Queries that are currently loading are
// fresh.
log.begins.subscribe(() => {
  queries.invalidateQueries({}, { cancelRefetch: log.begins.value > 1 }).catch(() => {
    // Ignore errors here, because queries store their own.
  });
});

// Refetch what failed while the control plane was unreachable.
log.returns.subscribe(() => {
  queries.invalidateQueries({ predicate: ({ state }) => state.status === "error" }).catch(() => {
    // Ignore errors here, because queries store their own.
  });
});

/** Events of every type. */
export const EVERY_EVENT = ["*"] as const;

/** Time within which events trigger one refetch. */
const GATHER_MS = 400;
/** How long to gather events for data that every type of event can change. */
export const RARE_MS = 3_000;

/** Which events trigger a refetch, and how long to wait for others. */
export interface Reasons {
  /** Prefixes of event types. */
  readonly on?: readonly string[];
  readonly subject?: string;
  readonly gatherMs?: number;
}

/** Call `act` soon after a matching event, and once for events that arrive together. */
export function useEvents({ on = [], subject, gatherMs = GATHER_MS }: Reasons, act: () => unknown): void {
  const types = on.join(" ");
  const answer = useEffectEvent(act);
  useEffect(() => {
    let timer: number | undefined;
    const stop = log.listen((events) => {
      const concerned = events.some(
        (event) =>
          types.split(" ").some((type) => type === "*" || (type !== "" && event.type.startsWith(type))) &&
          (subject === undefined || event.subject === subject),
      );
      if (!concerned) return;
      timer ??= window.setTimeout(() => {
        timer = undefined;
        answer();
      }, gatherMs);
    });
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  }, [types, subject, gatherMs]);
}

/** Refetch a query if it is on screen. */
export function readAgain(...key: readonly unknown[]): void {
  queries.invalidateQueries({ queryKey: key }).catch(() => {
    // Ignore errors here, because queries store their own.
  });
}

/**
 * Fetch data, and refetch it soon after an event whose type begins with one of `on`. `key` identifies the data; when
 * the key changes, the data is also refetched.
 */
export function useRead<T>(
  key: readonly unknown[],
  read: (signal: AbortSignal) => Promise<T>,
  options: Reasons & { readonly enabled?: boolean } = {},
): UseQueryResult<T> {
  const { enabled = true, ...reasons } = options;
  useEvents(reasons, () => readAgain(...key));
  return useQuery({
    queryKey: key,
    enabled,
    queryFn: async ({ signal }) => {
      try {
        return await read(signal);
      } catch (cause) {
        const error = toCallError(cause);
        if (error.kind === "signed-out") sessionEnded.set(error);
        throw cause;
      }
    },
    retry: (failures, cause) => toCallError(cause).kind === "away" && failures < 3,
  });
}
