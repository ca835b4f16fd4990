import { effectiveLabels, hasStatus, type Json, matches, type Selector } from "@rollcall/domain";
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
    mayHaveEnded: (events) => events.some((event) => mayEnd(event, { memberships, statuses, selector })),
  };
}

interface Wanted {
  readonly memberships: ReadonlySet<string> | undefined;
  readonly statuses: ReadonlySet<string> | undefined;
  readonly selector: Selector;
}

/** Whether a node that was wanted need not be any more after an event. */
function mayEnd(event: StoredEvent, { memberships, statuses, selector }: Wanted): boolean {
  switch (event.type) {
    case "node.deleted":
    case "node.deregistered":
      return true;
    case "node.registered":
    case "node.key.rotation.required":
    case "node.key.offered":
    case "node.key.rotated":
    case "node.session.moved":
    case "node.identity.duplicated":
    case "node.identity.cleared":
    case "node.info.changed":
    case "node.scheduling.changed":
    case "node.flapping.started":
    case "node.flapping.ended":
    case "node.hardware.degraded":
    case "node.hardware.restored":
    case "node.hardware.accepted":
    case "node.rebooted":
    case "node.reboot.cleared":
    case "node.reactions.allowed":
      return false;
    case "node.approved":
    case "node.rejected":
    case "node.banned":
    case "node.unbanned":
      return memberships?.has(wordOf(event.before, "membership")) ?? false;
    case "node.connection.changed":
      return statuses?.has(wordOf(event.before, "connection")) ?? false;
    case "node.health.changed":
      return statuses?.has(wordOf(event.before, "health")) ?? false;
    case "node.labels.changed":
      return isAbout(selector, event);
    case "join.token.created":
    case "join.token.revoked":
    case "policy.health.set":
    case "policy.health.deleted":
    case "brake.changed":
    case "access.token.created":
    case "access.token.revoked":
      return false;
  }
}

function labelsOf(node: NodeRecord): ReadonlyMap<string, string> {
  return new Map(effectiveLabels(node.labels).map(({ key, value }) => [key, value]));
}

function wordOf(value: Json | null, field: string): string {
  const word = fieldOf(value, field);
  return typeof word === "string" ? word : "";
}

function isAbout(selector: Selector, { before, after }: StoredEvent): boolean {
  const keys = [before, after].flatMap((side) => {
    const labels = fieldOf(side, "labels");
    return typeof labels === "object" && labels !== null ? Object.keys(labels) : [];
  });
  return selector.some(({ key }) => keys.includes(key));
}

function fieldOf(value: Json | null, field: string): Json | undefined {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  return (value as { readonly [key: string]: Json })[field];
}
