import type { EventType, JobEventType } from "../events/events.ts";

/** The documentation of one type of event. */
export interface EventDescription {
  /** When it happens. */
  readonly when: string;
  /** What the subject of the event identifies. */
  readonly subject: string;
  /** Who can be the actor. */
  readonly actors: readonly string[];
  /** The fields of `before`; null if the event has no `before`. */
  readonly before: readonly string[] | null;
  /** The fields of `after`; null if the event has no `after`. */
  readonly after: readonly string[] | null;
  /** Every possible reason. */
  readonly reasons: readonly string[];
}

/** Actors that are people or programs with a token. */
export const OPERATORS = ["token:<id>", "user:<subject>"];

const WEBHOOK = "webhook/<name>";
const WEBHOOK_FIELDS = ["host", "types", "excludeTypes", "selector", "paused"];

/** The part of the catalogue for events that are not about nodes or jobs. */
export const CLUSTER_EVENTS: Readonly<Record<Exclude<EventType, `node.${string}` | JobEventType>, EventDescription>> = {
  "join.token.created": {
    when:
      "An operator created a join token, or `rollcall up` created one for its own agent. Its uses are the " +
      "node.registered and node.approved events that name it.",
    subject: "the join token's id",
    actors: [...OPERATORS, "system"],
    before: null,
    after: ["maxUses", "ttlMs", "nodeNamePattern", "labels", "preauthorized", "ephemeral"],
    reasons: ["OPERATOR_CREATED"],
  },
  "join.token.revoked": {
    when: "An operator revoked a join token.",
    subject: "the join token's id",
    actors: OPERATORS,
    before: ["state"],
    after: ["state"],
    reasons: ["OPERATOR_REVOKED"],
  },
  "access.token.created": {
    when: "An admin created an access token. No event contains its text or its hash.",
    subject: "the access token's id",
    actors: OPERATORS,
    before: null,
    after: ["name", "role", "ttlMs"],
    reasons: ["ADMIN_CREATED"],
  },
  "access.token.revoked": {
    when:
      "An access token was revoked, or a console session ended. The reason is SELF_REVOKED if its holder did so, and " +
      "ADMIN_REVOKED if an admin did, or if someone else signed in with the same browser.",
    subject: "the access token's id",
    actors: OPERATORS,
    before: ["state"],
    after: ["state"],
    reasons: ["ADMIN_REVOKED", "SELF_REVOKED"],
  },
  "policy.health.set": {
    when:
      "An operator created or changed a health policy. The event contains the values that it sets and, for a group, " +
      "its selector and priority.",
    subject: "health-policy/default, health-policy/group/<name> or health-policy/node/<id>",
    actors: OPERATORS,
    before: ["selector", "priority", "values"],
    after: ["selector", "priority", "values"],
    reasons: ["OPERATOR_SET"],
  },
  "policy.health.deleted": {
    when:
      "An operator deleted a health policy. If a node is deleted, its policy is deleted with it, without a separate " +
      "event.",
    subject: "health-policy/default, health-policy/group/<name> or health-policy/node/<id>",
    actors: OPERATORS,
    before: ["selector", "priority", "values"],
    after: null,
    reasons: ["OPERATOR_DELETED"],
  },
  "brake.changed": {
    when:
      "The brake of a group or of the cluster changed its state: NORMAL, PARTIAL (a tenth of the group's size is " +
      "released per minute), FULL or FROZEN (nothing is released). size, silent and lost are the counts behind the " +
      "decision, absent if an operator decided.",
    subject: "the group, as <label>=<value>, or cluster",
    actors: ["replica:<id>", ...OPERATORS],
    before: ["brake"],
    after: ["brake", "size", "silent", "lost"],
    reasons: ["MASS_LOSS", "RECOVERED", "OPERATOR_FROZEN", "OPERATOR_RELEASED"],
  },
  "webhook.set": {
    when:
      "An admin created, changed or resumed a webhook. Events contain only the host of its URL, and never its " +
      "secret.",
    subject: WEBHOOK,
    actors: OPERATORS,
    before: WEBHOOK_FIELDS,
    after: [...WEBHOOK_FIELDS, "secretRotated"],
    reasons: ["ADMIN_SET"],
  },
  "webhook.deleted": {
    when: "An admin deleted a webhook.",
    subject: WEBHOOK,
    actors: OPERATORS,
    before: WEBHOOK_FIELDS,
    after: null,
    reasons: ["ADMIN_DELETED"],
  },
  "webhook.paused": {
    when:
      "Deliveries of a webhook are paused until an admin resumes them, because they failed for Webhooks.PauseAfter, " +
      "the receiver answered 410, or the webhook's secret cannot be read. The message says why.",
    subject: WEBHOOK,
    actors: ["system"],
    before: ["state"],
    after: ["state"],
    reasons: ["DELIVERY_FAILED", "GONE", "SECRET_UNREADABLE"],
  },
  "webhook.behind": {
    when:
      "Events were compacted before a webhook delivered them: the events it selects after the revision in before, up " +
      "to the revision in after.",
    subject: WEBHOOK,
    actors: ["system"],
    before: ["revision"],
    after: ["revision"],
    reasons: ["EVENTS_COMPACTED"],
  },
  "webhook.replayed": {
    when: "An admin reset a webhook to an earlier position in the event log.",
    subject: WEBHOOK,
    actors: OPERATORS,
    before: ["revision"],
    after: ["revision"],
    reasons: ["ADMIN_REPLAYED"],
  },
};
