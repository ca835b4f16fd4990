import type { NewEvent } from "../events/events.ts";

/** The event of a node that offers a next key. */
export function keyOfferedEvent(change: {
  readonly subject: string;
  /** Fingerprint of the next key that the node had offered before; null for none. */
  readonly before: string | null;
  readonly after: string;
}): NewEvent {
  const { subject, before, after } = change;
  return {
    type: "node.key.offered",
    subject,
    actor: `node:${subject}`,
    reason: "NEXT_KEY_OFFERED",
    message: "",
    before: before === null ? null : { nextKeyFingerprint: before },
    after: { nextKeyFingerprint: after },
  };
}

/**
 * The event of a next key that becomes the node's key because it was used for the first
 * time.
 */
export function keyRotatedEvent(change: {
  readonly subject: string;
  /** Fingerprints. */
  readonly before: string;
  readonly after: string;
}): NewEvent {
  const { subject, before, after } = change;
  return {
    type: "node.key.rotated",
    subject,
    actor: `node:${subject}`,
    reason: "NEXT_KEY_USED",
    message: "",
    before: { keyFingerprint: before },
    after: { keyFingerprint: after },
  };
}

/** The event of an operator who requires a node to rotate its key. */
export function keyRotationRequiredEvent(by: {
  readonly subject: string;
  readonly actor: string;
  readonly message: string;
  /** Fingerprint of the key to replace. */
  readonly keyFingerprint: string;
}): NewEvent {
  const { subject, actor, message, keyFingerprint } = by;
  return {
    type: "node.key.rotation.required",
    subject,
    actor,
    reason: "OPERATOR_REQUIRED",
    message,
    before: { keyFingerprint },
    after: { keyFingerprint },
  };
}
