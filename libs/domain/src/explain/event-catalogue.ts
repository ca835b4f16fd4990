import { CONDITION_REASONS } from "../conditions/node-conditions.ts";
import type { EventType } from "../events/events.ts";
import { CLUSTER_EVENTS, type EventDescription, OPERATORS } from "./cluster-events.ts";
import { JOB_EVENTS } from "./job-event-catalogue.ts";

export type { EventDescription };

const NODE = "the node's id";
const DRAIN = ["deadlineMs", "force", "ignoreDaemons", "keepIneligible", "maxParallel", "queued"];

/** Every type of event. A missing entry is a compile error. */
export const EVENT_CATALOGUE: Readonly<Record<EventType, EventDescription>> = {
  "node.registered": {
    when:
      "A node joined the cluster for the first time. joinToken names the join token that it used, if any, and " +
      "joinedFrom is the address that it joined from. A token's uses are counted by these events. A node that " +
      "returns causes no event.",
    subject: NODE,
    actors: ["node:<id>"],
    before: null,
    after: ["membership", "joinToken", "joinedFrom"],
    reasons: ["AUTO_APPROVED", "APPROVAL_REQUIRED", "JOIN_TOKEN", "SERVICE_ACCOUNT", "CONTROL_PLANE"],
  },
  "node.approved": {
    when:
      "An operator approved a pending or rejected node, or a pending node returned with a preauthorized join token " +
      "or with its service account's token. With a join token, joinToken names it and joinedFrom is the address that " +
      "the node joined from.",
    subject: NODE,
    actors: [...OPERATORS, "join-token:<id>", "service-account:<namespace>/<name>"],
    before: ["membership"],
    after: ["membership", "joinToken", "joinedFrom"],
    reasons: ["OPERATOR_APPROVED", "JOIN_TOKEN", "SERVICE_ACCOUNT"],
  },
  "node.rejected": {
    when: "An operator rejected a node.",
    subject: NODE,
    actors: OPERATORS,
    before: ["membership"],
    after: ["membership"],
    reasons: ["OPERATOR_REJECTED"],
  },
  "node.deleted": {
    when:
      "A node was deleted: by an operator, because its control-plane process has been gone for an hour, or because " +
      "the node has been gone for longer than the configured time.",
    subject: NODE,
    actors: [...OPERATORS, "system"],
    before: ["membership"],
    after: null,
    reasons: ["OPERATOR_DELETED", "LEASE_EXPIRED", "COLLECTED", "EPHEMERAL_LEFT"],
  },
  "node.deregistered": {
    when: "A node left the cluster for good, at its own request.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["membership"],
    after: null,
    reasons: ["AGENT_DEREGISTERED"],
  },
  "node.banned": {
    when:
      "An operator banned a node, or an id or a key fingerprint that no node has yet. In the latter " +
      "case, that id or fingerprint is the subject.",
    subject: "the node's id, or the fingerprint of a key",
    actors: OPERATORS,
    before: ["membership"],
    after: ["membership", "banned"],
    reasons: ["OPERATOR_BANNED"],
  },
  "node.unbanned": {
    when: "An operator lifted every ban on a node, an id or a key. An existing node stays rejected.",
    subject: "the node's id, or the fingerprint of a key",
    actors: OPERATORS,
    before: ["membership", "banned"],
    after: ["membership"],
    reasons: ["BAN_LIFTED"],
  },
  "node.key.rotation.required": {
    when: "An operator required a node to rotate its key.",
    subject: NODE,
    actors: OPERATORS,
    before: ["keyFingerprint"],
    after: ["keyFingerprint"],
    reasons: ["OPERATOR_REQUIRED"],
  },
  "node.key.offered": {
    when: "A node offered the key that it will use next. From now on it can prove its identity with either key.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["nextKeyFingerprint"],
    after: ["nextKeyFingerprint"],
    reasons: ["NEXT_KEY_OFFERED"],
  },
  "node.key.rotated": {
    when: "A node proved its identity with its next key for the first time. Its previous key is refused from then on.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["keyFingerprint"],
    after: ["keyFingerprint"],
    reasons: ["NEXT_KEY_USED"],
  },
  "node.identity.duplicated": {
    when:
      "Two agents alternately use the identity of one node. No further event follows while the same two machines " +
      "do so.",
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
      "A node's information about itself changed. Small changes of volatile figures are ignored: memory and disk " +
      "that change by at most 2 % (10 % for one NUMA node) cause no event. Larger changes of them cause at most one " +
      "event in ten minutes, unless something that was approved is lost.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["infoDigest"],
    after: ["infoDigest"],
    reasons: ["AGENT_REPORTED"],
  },
  "node.labels.changed": {
    when: "A node's labels in effect changed, or who set them. before and after contain only the labels that differ.",
    subject: NODE,
    actors: ["node:<id>", ...OPERATORS, "join-token:<id>"],
    before: ["labels"],
    after: ["labels"],
    reasons: ["AGENT_REPORTED", "OPERATOR_LABELED", "JOIN_TOKEN"],
  },
  "node.connection.changed": {
    when: "A node connected or disconnected.",
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
      "A connected node opened its stream at another health replica before it closed the previous one. Replicas ask " +
      "for this when they rebalance agents or shut down. The node's connection does not change, and WatchNodes does " +
      "not report this event.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: ["replica"],
    after: ["replica"],
    reasons: ["STREAM_MOVED"],
  },
  "node.health.changed": {
    when:
      "A node's effective health changed, including by an operator's mark. If the failure detector decided, evidence " +
      "contains the facts: replica, lastReceivedAgoMs, silentMs, thresholdMs, grantedMs, and the value and policy " +
      "that set the threshold.",
    subject: NODE,
    actors: ["replica:<id>", ...OPERATORS],
    before: ["health"],
    after: ["health", "evidence"],
    reasons: ["HEARTBEAT_RECEIVED", "HEARTBEATS_MISSED", "AGENT_SHUTDOWN", "OPERATOR_MARKED", "OPERATOR_MARK_CLEARED"],
  },
  "node.reactions.allowed": {
    when:
      "Programs may now react to the loss of a node. This happens once each time an approved compute node stops " +
      "being HEALTHY, after every brake that holds it has released it. A node that recovers earlier has no such " +
      "event. React to this event, never to node.health.changed. group is the node's brake group, absent if it has " +
      "none; brake is the state of the brake that released it; lostSinceMs is when it was lost, in milliseconds " +
      "since 1970.",
    subject: NODE,
    actors: ["replica:<id>", ...OPERATORS],
    before: null,
    after: ["group", "brake", "lostSinceMs"],
    reasons: ["NO_STORM", "BRAKE_PACED", "OPERATOR_RELEASED", "AGENT_SHUTDOWN", "OPERATOR_MARKED"],
  },
  "node.scheduling.changed": {
    when: "A hold on new work was placed on a node or lifted, or the reason for a hold changed.",
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
      "An operator started a drain of a node or changed its conditions, or a drain that waited for other nodes of " +
      "its selection started (queued is then false). deadlineMs is the time limit, counted from the start of the " +
      "drain.",
    subject: NODE,
    actors: [...OPERATORS, "system"],
    before: DRAIN,
    after: DRAIN,
    reasons: ["OPERATOR_DRAINED", "DRAIN_BEGINS"],
  },
  "node.drain.cancelled": {
    when: "An operator cancelled a drain that was in progress or completed, or uncordoned its node.",
    subject: NODE,
    actors: OPERATORS,
    before: DRAIN,
    after: null,
    reasons: ["DRAIN_CANCELLED"],
  },
  "node.flapping.started": {
    when:
      "A node had three outages within ten minutes. Its first join, a change from UNHEALTHY to UNKNOWN during an " +
      "outage, and restarts that its agent announced do not count. No further event follows while the node flaps. " +
      "During this time it gets no new work, unless its policy turns this hold off. Its detected health still " +
      "decides about its running work.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: null,
    after: ["outages", "withinMs"],
    reasons: ["FLAPPING"],
  },
  "node.flapping.ended": {
    when: "A flapping node has been steady for as long as its policy requires: no outage began or ended.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: ["flappingMs"],
    after: ["steadyMs"],
    reasons: ["STEADY_AGAIN"],
  },
  "node.hardware.degraded": {
    when:
      "A node reported less hardware than was approved, or one of its GPUs is missing from its samples or too hot. " +
      "The reason is that of the most serious new trouble. before and after list the troubles of one source, each as " +
      "'KIND part'.",
    subject: NODE,
    actors: ["node:<id>", "replica:<id>"],
    before: ["troubles"],
    after: ["troubles"],
    reasons: ["HARDWARE_DEGRADED", "GPU_GONE", "GPU_TOO_HOT"],
  },
  "node.hardware.restored": {
    when: "Some hardware problems of a node ended, and no new ones appeared.",
    subject: NODE,
    actors: ["node:<id>", "replica:<id>"],
    before: ["troubles"],
    after: ["troubles"],
    reasons: ["HARDWARE_RESTORED"],
  },
  "node.hardware.accepted": {
    when: "An operator accepted a node's current hardware. Later reports are compared with it.",
    subject: NODE,
    actors: OPERATORS,
    before: ["hardware"],
    after: ["hardware"],
    reasons: ["OPERATOR_ACCEPTED"],
  },
  "node.conditions.changed": {
    when:
      "The conditions that a node reports changed. A condition is a fault that the node's agent detected; the node " +
      "gets no " +
      "new work while it has one. The reason is that of the first new condition, otherwise that of the first " +
      "remaining one, and CONDITIONS_OVER if none remains. Agents of other implementations can report other reasons.",
    subject: NODE,
    actors: ["node:<id>"],
    before: ["conditions"],
    after: ["conditions"],
    reasons: [...CONDITION_REASONS, "CONDITIONS_OVER"],
  },
  "node.rebooted": {
    when: "A node returned after its machine rebooted without its agent announcing a shutdown.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: ["bootId"],
    after: ["bootId"],
    reasons: ["UNEXPECTED_REBOOT"],
  },
  "node.reboot.cleared": {
    when: "A node has been up for long enough after an unexpected reboot that its health no longer shows the reboot.",
    subject: NODE,
    actors: ["replica:<id>"],
    before: null,
    after: null,
    reasons: ["REBOOT_OVER"],
  },
  ...CLUSTER_EVENTS,
  ...JOB_EVENTS,
};

/** Every type, in catalogue order. */
export const EVENT_TYPES: readonly EventType[] = Object.keys(EVENT_CATALOGUE).filter(isEventType);

/** Whether a string is an event type. */
export function isEventType(text: string): text is EventType {
  return Object.hasOwn(EVENT_CATALOGUE, text);
}
