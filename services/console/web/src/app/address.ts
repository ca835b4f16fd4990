import { createBrowserHistory, useLocation } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";

/** The browser's history; separate from the router, so that any part of a page can navigate. */
export const history = createBrowserHistory();

/** The search parameters of the current address. */
export function useSearch(): Readonly<Record<string, string>> {
  const searchStr = useLocation({ select: (location) => location.searchStr });
  return useMemo(() => Object.fromEntries(new URLSearchParams(searchStr)), [searchStr]);
}

/** Replace search parameters of the current address; undefined removes one. */
export function useSetSearch(): (change: Readonly<Record<string, string | undefined>>) => void {
  return useCallback((change) => {
    const search = new URLSearchParams(window.location.search);
    for (const [key, value] of Object.entries(change)) {
      if (value === undefined || value === "") search.delete(key);
      else search.set(key, value);
    }
    const text = search.toString();
    history.replace(`${window.location.pathname}${text === "" ? "" : `?${text}`}`);
  }, []);
}

/** Navigate to a path, which can have search parameters. */
export function goTo(path: string): void {
  history.push(path);
}

/** A path with search parameters; undefined ones are omitted. */
export function pathWith(path: string, search: Readonly<Record<string, string | undefined>>): string {
  const entries = Object.entries(search).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const text = new URLSearchParams(entries).toString();
  return text === "" ? path : `${path}?${text}`;
}
