import { CONDITION_REASONS } from "../conditions/node-conditions.ts";
import { CLUSTER_EVENTS, type EventDescription, OPERATORS } from "./cluster-events.ts";
import type { EventType } from "./events.ts";
import { JOB_EVENTS } from "./job-event-catalogue.ts";

export type { EventDescription };

const NODE = "the node's id";
const DRAIN = ["deadlineMs", "force", "ignoreDaemons", "keepIneligible", "maxParallel", "queued"];

/** Every type of event. A type without a row does not compile. */
export const EVENT_CATALOGUE: Readonly<Record<EventType, EventDescription>> = {
  "node.registered": {
    when:
      "A node joined the fleet for the first time; joinToken names the join token that let it in, which is that " +
      "token's use, and joinedFrom the address that it came from. One that returns makes no event.",
    subject: NODE,
    actors: ["node:<id>"],
    before: null,
    after: ["membership", "joinToken", "joinedFrom"],
    reasons: ["AUTO_APPROVED", "APPROVAL_REQUIRED", "JOIN_TOKEN", "SERVICE_ACCOUNT", "CONTROL_PLANE"],
  },
  "node.approved": {
    when:
      "An operator let a pending or rejected node join, or a pending one returned with a preauthorized join " +
      "token, which joinToken names (and joinedFrom where it came from then), or with its service account's token.",
    subject: NODE,
    actors: [...OPERATORS, "join-token:<id>", "service-account:<namespace>/<name>"],
    before: ["membership"],
    after: ["membership", "joinToken", "joinedFrom"],
    reasons: ["OPERATOR_APPROVED", "JOIN_TOKEN", "SERVICE_ACCOUNT"],
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
    when:
      "A node was removed from the record: by an operator, because its control-plane process has been gone for " +
      "an hour, or because the node has been gone for as long as such nodes are kept.",
    subject: NODE,
    actors: [...OPERATORS, "system"],
    before: ["membership"],
    after: null,
    reasons: ["OPERATOR_DELETED", "LEASE_EXPIRED", "COLLECTED", "EPHEMERAL_LEFT"],
  },
  "node.deregistered": {
    when: "A node left for good by itself.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["membership"],
    after: null,
    reasons: ["AGENT_DEREGISTERED"],
  },
  "node.banned": {
    when:
      "An operator banned a node, or in advance an id or the fingerprint of a key of no node, which is the " +
      "subject then.",
    subject: "the node's id, or the fingerprint of a key",
    actors: OPERATORS,
    before: ["membership"],
    after: ["membership", "banned"],
    reasons: ["OPERATOR_BANNED"],
  },
  "node.unbanned": {
    when: "An operator lifted every ban on a node, an id or a key. A node that is there stays rejected.",
    subject: "the node's id, or the fingerprint of a key",
    actors: OPERATORS,
    before: ["membership", "banned"],
    after: ["membership"],
    reasons: ["BAN_LIFTED"],
  },
  "node.key.rotation.required": {
    when: "An operator wants a node to rotate its key.",
    subject: NODE,
    actors: OPERATORS,
    before: ["keyFingerprint"],
    after: ["keyFingerprint"],
    reasons: ["OPERATOR_REQUIRED"],
  },
  "node.key.offered": {
    when: "A node offered the key that it will use next: from now on it may prove itself with either.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["nextKeyFingerprint"],
    after: ["nextKeyFingerprint"],
    reasons: ["NEXT_KEY_OFFERED"],
  },
  "node.key.rotated": {
    when: "A node proved itself with its next key for the first time: the key before is refused from then on.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["keyFingerprint"],
    after: ["keyFingerprint"],
    reasons: ["NEXT_KEY_USED"],
  },
  "node.identity.duplicated": {
    when: "Two agents were found to use one node's identity in turns. One event while the same two machines do.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: null,
    after: ["machines"],
    reasons: ["DUPLICATE_IDENTITY"],
  },
  "node.identity.cleared": {
    when: "Only one agent has used a duplicated identity for ten minutes.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: null,
    after: null,
    reasons: ["ONE_MACHINE_LEFT"],
  },
  "node.info.changed": {
    when:
      "What a node says about itself changed. Volatile figures are no part of it: memory and disk that move by 2 " +
      "% or less (10 % for one NUMA node) make no event, and those that move by more at most one in ten minutes, " +
      "unless something that was approved is lost.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["infoDigest"],
    after: ["infoDigest"],
    reasons: ["AGENT_REPORTED"],
  },
  "node.labels.changed": {
    when: "Labels in effect changed, or who set them; before and after name those that differ alone.",
    subject: NODE,
    actors: ["node:<id>", ...OPERATORS, "join-token:<id>"],
    before: ["labels"],
    after: ["labels"],
    reasons: ["AGENT_REPORTED", "OPERATOR_LABELED", "JOIN_TOKEN"],
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
      "KEY_RETIRED",
      "NODE_BANNED",
      "REPLICA_LOST",
      "LEASE_EXPIRED",
    ],
  },
  "node.session.moved": {
    when:
      "A connected node opened its stream at another health replica before it left the one before, as it is " +
      "asked to when replicas share agents or end. Its connection does not change, and WatchNodes says nothing " +
      "of it.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: ["replica"],
    after: ["replica"],
    reasons: ["STREAM_MOVED"],
  },
  "node.health.changed": {
    when:
      "A node's effective health changed, an operator's mark included. Where silence decided, evidence says how: " +
      "replica, lastReceivedAgoMs, silentMs, thresholdMs, grantedMs, and the value and policy that set the threshold.",
    subject: NODE,
    actors: ["replica:<id>", ...OPERATORS],
    before: ["health"],
    after: ["health", "evidence"],
    reasons: ["HEARTBEAT_RECEIVED", "HEARTBEATS_MISSED", "AGENT_SHUTDOWN", "OPERATOR_MARKED", "OPERATOR_MARK_CLEARED"],
  },
  "node.reactions.allowed": {
    when:
      "Others may now react to the loss of a node: once for each time that an approved compute node stops being " +
      "HEALTHY, and only after every brake that holds it has let it go. A node that comes back before has none. " +
      "React to this, never to node.health.changed. group is the node's group of the brake, absent for a node of " +
      "none; brake is the state that let it go; lostSinceMs is when it was lost, in milliseconds since 1970.",
    subject: NODE,
    actors: ["replica:<id>", ...OPERATORS],
    before: null,
    after: ["group", "brake", "lostSinceMs"],
    reasons: ["NO_STORM", "BRAKE_PACED", "OPERATOR_RELEASED", "AGENT_SHUTDOWN", "OPERATOR_MARKED"],
  },
  "node.scheduling.changed": {
    when: "A hold on new work was placed on a node or lifted, or its cause is another.",
    subject: NODE,
    actors: [...OPERATORS, "replica:<id>", "scheduler:<id>", "system"],
    before: ["scheduling", "holds"],
    after: ["scheduling", "holds"],
    reasons: [
      "OPERATOR_CORDONED",
      "NODE_DRAINING",
      "NODE_DRAINED",
      "DRAIN_UNCONFIRMED",
      "NODE_FLAPPING",
      "HARDWARE_IN_DOUBT",
      "NODE_CONDITION",
      "DUPLICATE_IDENTITY",
      "NO_HOLD",
    ],
  },
  "node.drain.started": {
    when:
      "An operator drains a node, or does so again under other conditions, or a drain that waited for other nodes " +
      "of its selection begins: queued is false then. deadlineMs is the time that it may take from its beginning.",
    subject: NODE,
    actors: [...OPERATORS, "system"],
    before: DRAIN,
    after: DRAIN,
    reasons: ["OPERATOR_DRAINED", "DRAIN_BEGINS"],
  },
  "node.drain.cancelled": {
    when: "An operator ended a drain that went on or was done, or uncordoned its node.",
    subject: NODE,
    actors: OPERATORS,
    before: DRAIN,
    after: null,
    reasons: ["DRAIN_CANCELLED"],
  },
  "node.flapping.started": {
    when:
      "A node has had three outages in ten minutes. Its first join, UNHEALTHY to UNKNOWN within an outage, and " +
      "restarts that its agent announced do not count. One event for as long as it flaps. The node takes no new work " +
      "until the end, unless its policy never holds it; its health, and the work that runs there, follow what is " +
      "detected.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: null,
    after: ["outages", "withinMs"],
    reasons: ["FLAPPING"],
  },
  "node.flapping.ended": {
    when: "No outage of a node that flapped has begun or ended for as long as its policy says.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: ["flappingMs"],
    after: ["steadyMs"],
    reasons: ["STEADY_AGAIN"],
  },
  "node.hardware.degraded": {
    when:
      "A node reported less hardware than was approved, or a GPU of it is gone from its samples or too hot. The " +
      "reason is that of the gravest new trouble; before and after list those of one source, as 'KIND part'.",
    subject: NODE,
    actors: ["node:<id>", "replica:<id>"],
    before: ["troubles"],
    after: ["troubles"],
    reasons: ["HARDWARE_DEGRADED", "GPU_GONE", "GPU_TOO_HOT"],
  },
  "node.hardware.restored": {
    when: "Troubles with a node's hardware are over, and none is new.",
    subject: NODE,
    actors: ["node:<id>", "replica:<id>"],
    before: ["troubles"],
    after: ["troubles"],
    reasons: ["HARDWARE_RESTORED"],
  },
  "node.hardware.accepted": {
    when: "An operator accepted a node's hardware as it is: what it reports later is compared with that.",
    subject: NODE,
    actors: OPERATORS,
    before: ["hardware"],
    after: ["hardware"],
    reasons: ["OPERATOR_ACCEPTED"],
  },
  "node.conditions.changed": {
    when:
      "A node reports other conditions than before: faults that it has found in itself, for which it gets no new " +
      "work. The reason is that of the first new condition, else of the first that is left, and CONDITIONS_OVER when " +
      "none is; agents of another kind can report other reasons.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["conditions"],
    after: ["conditions"],
    reasons: [...CONDITION_REASONS, "CONDITIONS_OVER"],
  },
  "node.rebooted": {
    when: "A node came back from another boot of the same machine, and its agent had not said goodbye.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: ["bootId"],
    after: ["bootId"],
    reasons: ["UNEXPECTED_REBOOT"],
  },
  "node.reboot.cleared": {
    when: "An unexpected reboot lies so far back that the node's health does not show it any more.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: null,
    after: null,
    reasons: ["REBOOT_OVER"],
  },
  ...CLUSTER_EVENTS,
  ...JOB_EVENTS,
};

/** Every type, in the order of the catalogue. */
export const EVENT_TYPES: readonly EventType[] = Object.keys(EVENT_CATALOGUE).filter(isEventType);

/** Whether a text is a type of event. */
export function isEventType(text: string): text is EventType {
  return Object.hasOwn(EVENT_CATALOGUE, text);
}
