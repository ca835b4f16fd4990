import { effectiveLabels, hasStatus, matches, mayEndWanted } from "@rollcall/domain";
import type { EventRow, Node, NodeFilter } from "@rollcall/store";

/**
 * A node filter, compiled once for all changes of a watch. It matches the same nodes as the store's SQL for the
 * same filter.
 */
export interface CompiledNodeFilter {
  /** Whether a node in its current state matches. */
  isWanted(node: Node): boolean;
  /**
   * Whether a node may have matched the filter before these events, given oldest first. Returns true when
   * unsure.
   */
  mayHaveEnded(events: readonly EventRow[]): boolean;
}

type WatchedFilter = Pick<NodeFilter, "types" | "memberships" | "statuses" | "selector">;

export function compileNodeFilter(filter: WatchedFilter): CompiledNodeFilter {
  const types = filter.types && new Set<string>(filter.types);
  const memberships = filter.memberships && new Set<string>(filter.memberships);
  const statuses = filter.statuses && new Set<string>(filter.statuses);
  const { selector = [] } = filter;
  return {
    isWanted: (node) =>
      (types === undefined || types.has(node.type)) &&
      (memberships === undefined || memberships.has(node.membership.state)) &&
      (filter.statuses?.some((status) => hasStatus(node, status)) ?? true) &&
      (selector.length === 0 || matches(selector, labelsOf(node))),
    mayHaveEnded: (events) => events.some((event) => mayEndWanted(event, { memberships, statuses, selector })),
  };
}

function labelsOf(node: Node): ReadonlyMap<string, string> {
  return new Map(effectiveLabels(node.labels).map(({ key, value }) => [key, value]));
}
