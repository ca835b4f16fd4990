import { QueryClient, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { toCallError } from "./call-error.ts";
import { log } from "./log.ts";
import { sessionEnded } from "./session-end.ts";

/**
 * What is read once and again when the log says that it changed; nothing is read by the clock. What no page showed
 * for a while is shown as it was, and read again at once: no one has heard meanwhile whether it changed.
 */
export const queries = new QueryClient({
  defaultOptions: {
    queries: { retry: 2, staleTime: 0, gcTime: 5 * 60_000, refetchOnWindowFocus: false },
  },
});

// What was read before the log began may have changed without a word. What is being read as the page is opened is new.
log.begins.subscribe(() => {
  queries.invalidateQueries({}, { cancelRefetch: log.begins.value > 1 }).catch(() => {
    // The queries themselves keep what went wrong.
  });
});

// What could not be read while the control plane was away.
log.returns.subscribe(() => {
  queries.invalidateQueries({ predicate: ({ state }) => state.status === "error" }).catch(() => {
    // The queries themselves keep what went wrong.
  });
});

/** Events of every type. */
export const EVERY_EVENT = ["*"] as const;

/** Events that come together are one reason to read again. */
const GATHER_MS = 400;
/** The same for what may change with every event of a fleet. */
export const RARE_MS = 3_000;

/** Which events are a reason to read again, and how long at most one waits for others. */
export interface Reasons {
  /** What their types begin with. */
  readonly on?: readonly string[];
  readonly subject?: string;
  readonly gatherMs?: number;
}

/** Do something soon after events that are a reason for it; once for those that come together. */
export function useEvents({ on = [], subject, gatherMs = GATHER_MS }: Reasons, act: () => unknown): void {
  const types = on.join(" ");
  const latest = useRef(act);
  latest.current = act;
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
        latest.current();
      }, gatherMs);
    });
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  }, [types, subject, gatherMs]);
}

/** Read something again, if it is shown. */
export function readAgain(...key: readonly unknown[]): void {
  queries.invalidateQueries({ queryKey: key }).catch(() => {
    // The query itself keeps what went wrong.
  });
}

/**
 * Read something, and read it again soon after an event whose type begins with one of `on`. `key` names what is read;
 * it is read again too when the key changes.
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
