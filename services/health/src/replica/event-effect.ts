import type { Membership } from "@rollcall/domain";
import type { StoredEvent } from "@rollcall/store";

/** What an event of the log means for a node that is held. */
export type EventEffect =
  /** Somebody decided about the node. */
  | { readonly kind: "membership"; readonly membership: Membership }
  /** The node is no longer in the record. */
  | { readonly kind: "removed"; readonly by: "operator" | "node" }
  /** Another replica took the next epoch: what is held here is fenced. */
  | { readonly kind: "moved" }
  /** An operator may have marked the node, or cleared its mark. */
  | { readonly kind: "mark" }
  /** What the node says about itself is new in the record; the digest is null when the event does not tell it. */
  | { readonly kind: "info"; readonly digest: string | null }
  | { readonly kind: "labels" }
  | { readonly kind: "none" };

const NONE: EventEffect = { kind: "none" };

/**
 * Tell what an event means for the node that it is about.
 *
 * @param self the actor as which this replica writes: its own events say nothing new to it.
 */
export function effectOf(event: StoredEvent, self: string): EventEffect {
  switch (event.type) {
    case "node.approved":
      return { kind: "membership", membership: membershipIn(event, "APPROVED") };
    case "node.rejected":
      return { kind: "membership", membership: membershipIn(event, "REJECTED") };
    case "node.deleted":
      return { kind: "removed", by: "operator" };
    case "node.deregistered":
      return { kind: "removed", by: "node" };
    case "node.connection.changed":
      return event.actor === self ? NONE : { kind: "moved" };
    case "node.health.changed":
      return event.actor === self ? NONE : { kind: "mark" };
    case "node.info.changed":
      return { kind: "info", digest: digestIn(event) };
    case "node.labels.changed":
      return { kind: "labels" };
    case "node.registered":
    case "node.scheduling.changed":
      return NONE;
  }
}

function membershipIn(event: StoredEvent, state: Membership["state"]): Membership {
  const { atMs: sinceMs, reason, message, actor } = event;
  return { state, sinceMs, reason, message, actor };
}

function digestIn({ after }: StoredEvent): string | null {
  if (after === null || typeof after !== "object" || !("infoDigest" in after)) return null;
  return typeof after.infoDigest === "string" ? after.infoDigest : null;
}
