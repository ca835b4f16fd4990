import { effectiveLabels, hasStatus, matches, mayEndWanted } from "@rollcall/domain";
import type { NodeFilter, NodeRecord, StoredEvent } from "@rollcall/store";

/**
 * A filter of nodes, compiled once for all changes of a watch. It means the same as the store's SQL for the same
 * filter.
 */
export interface CompiledNodeFilter {
  /** Whether a node as it is now is wanted. */
  isWanted(node: NodeRecord): boolean;
  /** Whether events of a node, the oldest first, may have ended that it was wanted. Errs on the side of true. */
  mayHaveEnded(events: readonly StoredEvent[]): boolean;
}

type WatchedFilter = Pick<NodeFilter, "types" | "memberships" | "statuses" | "selector">;

/** Compile a filter. */
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

function labelsOf(node: NodeRecord): ReadonlyMap<string, string> {
  return new Map(effectiveLabels(node.labels).map(({ key, value }) => [key, value]));
}
