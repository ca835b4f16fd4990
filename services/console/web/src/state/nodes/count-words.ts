import { formatCount } from "../units.ts";
import { isFiltered, type NodeFilter } from "./node-filter.ts";

/** What the list of nodes shows, and what the page knows. */
export interface ListCounts {
  /** Number of nodes in the list. */
  readonly shown: number;
  /** Number of nodes that the page has, whether or not they match the filter. */
  readonly loaded: number;
  /** Number of nodes and of machines in the fleet, counted by the server until all are loaded. */
  readonly total: number;
  readonly machines: number;
  /**
   * A large fleet is loaded page by page, and only the matching nodes are loaded. A full page holds as many nodes as it
   * can.
   */
  readonly state: "loading" | "complete" | "paged" | "full";
  readonly filter: NodeFilter;
}

/**
 * Describe how many nodes the list shows, and of how many: of all machines, or of all nodes if the filter names types.
 * The server does not count the matches of a filter in a large fleet.
 */
export function countWords({ shown, loaded, total, machines, state, filter }: ListCounts): string {
  const [among, noun] = filter.type.length === 0 ? [machines, "machines"] : [total, "nodes"];
  const part = isFiltered(filter)
    ? `loaded ${formatCount(shown)} matching ${noun}`
    : `loaded ${formatCount(shown)} of ${formatCount(among)} ${noun}`;
  switch (state) {
    case "loading":
      return `loaded ${formatCount(loaded)} of ${formatCount(total)} nodes`;
    case "complete":
      return `${formatCount(shown)} of ${formatCount(among)} ${noun}`;
    case "paged":
      return `${part}; scroll to load more`;
    case "full":
      return `${part}; filter to see others`;
  }
}
