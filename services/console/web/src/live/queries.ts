import { QueryClient, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { toCallError } from "./call-error.ts";
import { log } from "./log.ts";
import { sessionEnded } from "./session-end.ts";

/** What is read once and again when the log says that it changed; nothing is read by the clock. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: { retry: 2, staleTime: 60_000, gcTime: 5 * 60_000, refetchOnWindowFocus: false },
  },
});

// What was read before the log began may have changed without a word. What is being read as the page is opened is new.
log.begins.subscribe(() => {
  queries.invalidateQueries({}, { cancelRefetch: log.begins.value > 1 }).catch(() => {
    // The queries themselves keep what went wrong.
  });
});

/**
 * Read something, and read it again soon after an event whose type begins with one of `on`. `key` names what is read;
 * it is read again too when the key changes.
 */
export function useRead<T>(
  key: readonly unknown[],
  read: (signal: AbortSignal) => Promise<T>,
  options: { readonly on?: readonly string[]; readonly subject?: string; readonly enabled?: boolean } = {},
): UseQueryResult<T> {
  const { on = [], subject, enabled = true } = options;
  const name = JSON.stringify(key);
  const types = on.join(" ");
  useEffect(() => {
    let timer: number | undefined;
    const stop = log.listen((events) => {
      const concerned = events.some(
        (event) =>
          types.split(" ").some((type) => type !== "" && event.type.startsWith(type)) &&
          (subject === undefined || event.subject === subject),
      );
      if (!concerned) return;
      timer ??= window.setTimeout(() => {
        timer = undefined;
        queries.invalidateQueries({ queryKey: JSON.parse(name) as unknown[] }).catch(() => {
          // The query itself keeps what went wrong.
        });
      }, GATHER_MS);
    });
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  }, [name, types, subject]);
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

/** Events that come together are one reason to read again. */
const GATHER_MS = 400;
