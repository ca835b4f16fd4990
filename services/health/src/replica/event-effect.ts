import { EVENT_TYPES, type EventInterest, type Membership } from "@rollcall/domain";
import type { StoredEvent } from "@rollcall/store";

/** What an event of the log means for a node that is held. */
export type EventEffect =
  /** The node's membership changed. */
  | { readonly kind: "membership"; readonly membership: Membership }
  /** The node is no longer in the record. */
  | { readonly kind: "removed"; readonly by: "operator" | "node" }
  /** Another replica took the next epoch: this replica's session is fenced. */
  | { readonly kind: "moved" }
  /** The node's information changed in the record; the digest is null when the event does not carry it. */
  | { readonly kind: "info"; readonly digest: string | null }
  /** The agent's settings changed: labels, or a required key rotation. */
  | { readonly kind: "labels" }
  /** The node has a new key with this fingerprint; null when the event does not carry it. */
  | { readonly kind: "key"; readonly fingerprint: string | null }
  /** The node flaps, rebooted, or its hardware conditions changed: holds may have to follow. */
  | { readonly kind: "hardware" }
  | { readonly kind: "none" };

const NONE: EventEffect = { kind: "none" };

const AN_EVENT: StoredEvent = {
  ...{ type: "brake.changed", subject: "", actor: "", reason: "", message: "", before: null, after: null },
  ...{ revision: 0n, id: "", atMs: 0 },
};

/**
 * Return what an event means for the node that it is about.
 *
 * @param self the actor as which this replica writes; it ignores its own events.
 */
export function effectOf(event: StoredEvent, self: string): EventEffect {
  switch (event.type) {
    case "node.approved":
      return { kind: "membership", membership: membershipIn(event, "APPROVED") };
    case "node.rejected":
    case "node.banned":
    case "node.unbanned":
      return { kind: "membership", membership: membershipIn(event, "REJECTED") };
    case "node.deleted":
      return { kind: "removed", by: "operator" };
    case "node.deregistered":
      return { kind: "removed", by: "node" };
    case "node.connection.changed":
    case "node.session.moved":
      return event.actor === self ? NONE : { kind: "moved" };
    case "node.info.changed":
      return { kind: "info", digest: digestIn(event) };
    case "node.labels.changed":
      return { kind: "labels" };
    case "node.key.rotation.required":
      return { kind: "labels" };
    case "node.key.rotated":
      return { kind: "key", fingerprint: fingerprintIn(event) };
    case "node.flapping.started":
    case "node.rebooted":
    case "node.hardware.degraded":
    case "node.hardware.restored":
    case "node.hardware.accepted":
      return { kind: "hardware" };
    case "node.key.offered":
    case "node.identity.duplicated":
    case "node.identity.cleared":
    case "node.registered":
    case "node.health.changed":
    case "node.reactions.allowed":
    case "node.scheduling.changed":
    case "node.flapping.ended":
    case "node.reboot.cleared":
    case "access.token.created":
    case "access.token.revoked":
    case "join.token.created":
    case "join.token.revoked":
    case "policy.health.set":
    case "policy.health.deleted":
    case "brake.changed":
      return NONE;
  }
}

/**
 * What a replica reads of the log: whatever may mean something for a node that it holds, and of sessions those events
 * alone by which it loses one itself.
 */
export function replicaInterest(instance: string): EventInterest {
  const types = EVENT_TYPES.filter((type) => {
    const { kind } = effectOf({ ...AN_EVENT, type }, "");
    return kind !== "none" && kind !== "moved";
  });
  return { types: new Set(types), displaced: new Set([instance]) };
}

function membershipIn(event: StoredEvent, state: Membership["state"]): Membership {
  const { atMs: sinceMs, reason, message, actor } = event;
  return { state, sinceMs, reason, message, actor };
}

function digestIn({ after }: StoredEvent): string | null {
  if (after === null || typeof after !== "object" || !("infoDigest" in after)) return null;
  return typeof after.infoDigest === "string" ? after.infoDigest : null;
}

function fingerprintIn({ after }: StoredEvent): string | null {
  if (after === null || typeof after !== "object" || !("keyFingerprint" in after)) return null;
  return typeof after.keyFingerprint === "string" ? after.keyFingerprint : null;
}
