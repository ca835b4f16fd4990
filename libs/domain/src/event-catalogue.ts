import type { EventType } from "./events.ts";

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

const NODE = "the node's id";
const OPERATORS = ["token:<id>"];

/** Every type of event. A type without a row does not compile. */
export const EVENT_CATALOGUE: Readonly<Record<EventType, EventDescription>> = {
  "node.registered": {
    when: "A node joined the fleet for the first time; one that returns makes no event.",
    subject: NODE,
    actors: ["node:<id>"],
    before: null,
    after: ["membership"],
    reasons: ["AUTO_APPROVED", "APPROVAL_REQUIRED", "CONTROL_PLANE"],
  },
  "node.approved": {
    when: "An operator let a pending or rejected node join.",
    subject: NODE,
    actors: OPERATORS,
    before: ["membership"],
    after: ["membership"],
    reasons: ["OPERATOR_APPROVED"],
  },
  "node.rejected": {
    when: "An operator refused a node.",
    subject: NODE,
    actors: OPERATORS,
    before: ["membership"],
    after: ["membership"],
    reasons: ["OPERATOR_REJECTED"],
  },
  "node.deleted": {
    when: "A node was removed from the record: by an operator, or because its control-plane process has been gone for an hour.",
    subject: NODE,
    actors: [...OPERATORS, "system"],
    before: ["membership"],
    after: null,
    reasons: ["OPERATOR_DELETED", "LEASE_EXPIRED"],
  },
  "node.deregistered": {
    when: "A node left for good by itself.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["membership"],
    after: null,
    reasons: ["AGENT_DEREGISTERED"],
  },
  "node.info.changed": {
    when: "What a node says about itself changed. Volatile figures are no part of it.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["infoDigest"],
    after: ["infoDigest"],
    reasons: ["AGENT_REPORTED"],
  },
  "node.labels.changed": {
    when: "Labels in effect changed; before and after name those that differ alone.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["labels"],
    after: ["labels"],
    reasons: ["AGENT_REPORTED"],
  },
  "node.connection.changed": {
    when: "A node's connection was made or lost.",
    subject: NODE,
    actors: ["replica:<id>", "node:<id>", "system"],
    before: ["connection"],
    after: ["connection"],
    reasons: [
      "STREAM_OPENED",
      "STREAM_BROKEN",
      "STREAM_STALE",
      "AGENT_SHUTDOWN",
      "NODE_REJECTED",
      "REPLICA_LOST",
      "LEASE_EXPIRED",
    ],
  },
  "node.health.changed": {
    when: "A node's effective health changed, an operator's mark included.",
    subject: NODE,
    actors: ["replica:<id>", ...OPERATORS],
    before: ["health"],
    after: ["health"],
    reasons: [
      "HEARTBEAT_RECEIVED",
      "HEARTBEATS_MISSED",
      "AGENT_SHUTDOWN",
      "OPERATOR_MARKED",
      "OPERATOR_MARK_CLEARED",
    ],
  },
  "node.scheduling.changed": {
    when: "A hold on new work was placed on a node or lifted.",
    subject: NODE,
    actors: OPERATORS,
    before: ["scheduling", "holds"],
    after: ["scheduling", "holds"],
    reasons: ["OPERATOR_CORDONED", "NO_HOLD"],
  },
};

/** Every type, in the order of the catalogue. */
export const EVENT_TYPES: readonly EventType[] = Object.keys(EVENT_CATALOGUE).filter(isEventType);

/** Whether a text is a type of event. */
export function isEventType(text: string): text is EventType {
  return Object.hasOwn(EVENT_CATALOGUE, text);
}

/** The catalogue as a page in Markdown. */
export function formatEventCatalogue(): string {
  const sections = EVENT_TYPES.map((type) => {
    const row = EVENT_CATALOGUE[type];
    return [
      `## ${type}`,
      "",
      row.when,
      "",
      "| | |",
      "|---|---|",
      `| subject | ${row.subject} |`,
      `| actor | ${codes(row.actors)} |`,
      `| before | ${codes(row.before)} |`,
      `| after | ${codes(row.after)} |`,
      `| reason | ${codes(row.reasons)} |`,
      "",
    ].join("\n");
  });
  return `${PREFACE}\n${sections.join("\n")}`;
}

const PREFACE = `# Events

Generated from \`libs/domain/src/event-catalogue.ts\` by \`make gen\`; do not edit.

Each change is one event, written in the transaction that makes the change. Read them with \`rollcall events\`, with
\`rollcall.events.v1.EventService\` (ListEvents, WatchEvents), or from NATS. Types and reasons are stable names. \`before\` and \`after\` are
small objects that name what changed, and are absent where there was nothing, or nothing is left. A field that a newer release adds may be ignored.
`;

function codes(words: readonly string[] | null): string {
  return words === null ? "absent" : words.map((word) => `\`${word}\``).join(", ");
}
