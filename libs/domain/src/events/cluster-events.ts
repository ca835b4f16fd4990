import type { EventType, JobEventType } from "./events.ts";

/** What people and programs need to know of one type of event. */
export interface EventDescription {
  /** When it happens. */
  readonly when: string;
  /** What it is about. */
  readonly subject: string;
  /** Who can be its actor. */
  readonly actors: readonly string[];
  /** Fields of `before`; null when there is none. */
  readonly before: readonly string[] | null;
  /** Fields of `after`; null when there is none. */
  readonly after: readonly string[] | null;
  /** Every reason that it can have. */
  readonly reasons: readonly string[];
}

/** Actors that are people, or programs with a token. */
export const OPERATORS = ["token:<id>", "user:<subject>"];

const WEBHOOK = "webhook/<name>";
const WEBHOOK_FIELDS = ["host", "types", "excludeTypes", "selector", "paused"];

/** The events of whatever is no node: a part of the catalogue. */
export const CLUSTER_EVENTS: Readonly<Record<Exclude<EventType, `node.${string}` | JobEventType>, EventDescription>> = {
  "join.token.created": {
    when:
      "An operator made a join token, or `rollcall up` one for its own agent. Its uses are node.registered and " +
      "node.approved events that name it.",
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
    when: "An admin made an access token. Neither its text nor its hash is in any event.",
    subject: "the access token's id",
    actors: OPERATORS,
    before: null,
    after: ["name", "role", "ttlMs"],
    reasons: ["ADMIN_CREATED"],
  },
  "access.token.revoked": {
    when:
      "An access token was revoked, or a session of the console ended: SELF_REVOKED by its own holder, ADMIN_REVOKED " +
      "by an admin, or by a sign-in of another in the same browser.",
    subject: "the access token's id",
    actors: OPERATORS,
    before: ["state"],
    after: ["state"],
    reasons: ["ADMIN_REVOKED", "SELF_REVOKED"],
  },
  "policy.health.set": {
    when:
      "An operator made or changed a health policy. It carries a group's selector and priority with the values " +
      "that it sets.",
    subject: "health-policy/default, health-policy/group/<name> or health-policy/node/<id>",
    actors: OPERATORS,
    before: ["selector", "priority", "values"],
    after: ["selector", "priority", "values"],
    reasons: ["OPERATOR_SET"],
  },
  "policy.health.deleted": {
    when:
      "An operator deleted a health policy. That of a node that is removed goes with it, without an event of its " +
      "own.",
    subject: "health-policy/default, health-policy/group/<name> or health-policy/node/<id>",
    actors: OPERATORS,
    before: ["selector", "priority", "values"],
    after: null,
    reasons: ["OPERATOR_DELETED"],
  },
  "brake.changed": {
    when:
      "A group's brake, or the cluster's, was set, lifted, frozen or released: NORMAL, PARTIAL (a tenth of the " +
      "group's size is released a minute), FULL or FROZEN (none is). size, silent and lost are what it was " +
      "decided from, absent where an operator decided.",
    subject: "the group, as <label>=<value>, or cluster",
    actors: ["replica:<id>", ...OPERATORS],
    before: ["brake"],
    after: ["brake", "size", "silent", "lost"],
    reasons: ["MASS_LOSS", "RECOVERED", "OPERATOR_FROZEN", "OPERATOR_RELEASED"],
  },
  "webhook.set": {
    when:
      "An admin made or changed a webhook, or let it go on. Of its URL the host alone is in any event; its secret " +
      "is in none.",
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
      "Deliveries of a webhook are held until an admin lets them go on: they failed for Webhooks.PauseAfter, the " +
      "receiver answered 410, or the webhook's secret cannot be read. The message says why.",
    subject: WEBHOOK,
    actors: ["system"],
    before: ["state"],
    after: ["state"],
    reasons: ["DELIVERY_FAILED", "GONE", "SECRET_UNREADABLE"],
  },
  "webhook.behind": {
    when:
      "Events were compacted before a webhook delivered them: those after the revision before, up to the revision " +
      "after, as far as it wanted them.",
    subject: WEBHOOK,
    actors: ["system"],
    before: ["revision"],
    after: ["revision"],
    reasons: ["EVENTS_COMPACTED"],
  },
  "webhook.replayed": {
    when: "An admin set a webhook back in the log.",
    subject: WEBHOOK,
    actors: OPERATORS,
    before: ["revision"],
    after: ["revision"],
    reasons: ["ADMIN_REPLAYED"],
  },
};
