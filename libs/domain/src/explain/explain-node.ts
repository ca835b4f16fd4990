import {
  isUsedByAll,
  knowsEssentials,
  UNKNOWN_REASONS,
  type UnknownResource,
  unknownResources,
} from "../conditions/hardware.ts";
import type { JsonObject } from "../events/events.ts";
import { steadySinceMs } from "../health/flapping.ts";
import { isBanned } from "../membership/ban.ts";
import { DUPLICATE_QUIET_MS } from "../membership/duplicate-identity.ts";
import type { Node } from "../nodes/node.ts";
import type { HealthPolicy } from "../policy/policy-fields.ts";
import { stateWords } from "../state-words.ts";
import type { Connection, Health, Hold, HoldKind, Membership, NodeType, Scheduling } from "../states.ts";

/** A node's current state. Node has these fields. */
export interface ExplainedNode {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Connection;
  /** The effective health. */
  readonly health: Health;
  readonly scheduling: Scheduling;
  /** A NodeInfo as protobuf JSON; null for none. */
  readonly info: JsonObject | null;
}

/** Something that keeps a node from taking work. */
export interface Obstacle {
  readonly state: "type" | "membership" | "health" | "scheduling" | "resources";
  readonly reason: string;
  readonly text: string;
  /** What an operator can do to remove the obstacle; empty if nothing. */
  readonly remedy: string;
  /** When the obstacle arose; null if unknown. */
  readonly sinceMs: number | null;
  /** The latest time at which the obstacle ends, unless its cause recurs; null if it has no time limit. */
  readonly untilMs: number | null;
}

/** When each of a node's holds ends; null for a hold without a time limit. */
export interface HoldEnds {
  readonly FLAPPING: number | null;
  readonly HARDWARE: number | null;
  readonly IDENTITY: number | null;
  /** The deadline of the drain in progress. */
  readonly DRAIN: number | null;
  /** When the drain finished; null if it is in progress. */
  readonly drainedAtMs: number | null;
}

const NO_HOLD_ENDS: HoldEnds = { FLAPPING: null, HARDWARE: null, IDENTITY: null, DRAIN: null, drainedAtMs: null };

/** The facts that determine when holds end. */
export interface HoldEndFacts extends Pick<Node, "history" | "rebootedAtMs" | "duplicate"> {
  readonly policy: Pick<HealthPolicy, "flappingHoldMs" | "rebootHoldMs">;
  readonly drainDeadlineAtMs: number | null;
  readonly drainedAtMs: number | null;
  /** Whether the node's hardware is in doubt for a reason other than a reboot. */
  readonly hasTroubles: boolean;
}

/** Determine when a node's holds end if their causes do not recur. */
export function holdEnds(facts: HoldEndFacts): HoldEnds {
  const { history, rebootedAtMs, duplicate, policy, drainDeadlineAtMs, drainedAtMs, hasTroubles } = facts;
  const steadyMs = steadySinceMs(history);
  return {
    FLAPPING: steadyMs === null ? null : steadyMs + policy.flappingHoldMs,
    HARDWARE: rebootedAtMs === null || hasTroubles ? null : rebootedAtMs + policy.rebootHoldMs,
    IDENTITY: duplicate === null ? null : Math.max(...duplicate.map(({ atMs }) => atMs)) + DUPLICATE_QUIET_MS,
    DRAIN: drainDeadlineAtMs,
    drainedAtMs,
  };
}

/**
 * Whether a node can take work. No other function decides this.
 *
 * @param node its `health` is the effective health. Its `info` is a NodeInfo as protobuf JSON; null for none.
 */
export function mayTakeWork(node: {
  readonly type: NodeType;
  readonly membership: Membership;
  readonly health: Health;
  readonly scheduling: Scheduling;
  readonly info: JsonObject | null;
}): boolean {
  return (
    node.type === "COMPUTE" &&
    node.membership.state === "APPROVED" &&
    node.health.state === "HEALTHY" &&
    node.scheduling.state === "ELIGIBLE" &&
    knowsEssentials(node.info)
  );
}

/** Everything that keeps a node from taking work; empty if it can take work. */
export function obstaclesOf(node: ExplainedNode, ends: HoldEnds = NO_HOLD_ENDS): readonly Obstacle[] {
  if (node.type === "ORCHESTRATOR") {
    const text = "it is a control-plane process, which never gets work";
    return [{ state: "type", reason: "NODE_IS_ORCHESTRATOR", text, remedy: "", sinceMs: null, untilMs: null }];
  }
  // Also require a connection, because the node of a dead agent stays HEALTHY until its silence is long enough.
  const isBack = node.health.state === "HEALTHY" && node.connection.state === "CONNECTED";
  return [
    ...membershipObstacle(node),
    ...healthObstacle(node),
    ...node.scheduling.holds.map((hold) => holdObstacle(hold, ends, isBack)),
    ...unknownResources(node.info ?? {})
      .filter(({ resource }) => isUsedByAll(resource))
      .map(unknownObstacle),
  ];
}

/** Describe for people whether a node can take work, and why not; then the states that are not among the causes. */
export function summarizeNode(node: ExplainedNode): string {
  const { id, type, connection, health } = node;
  const remark = health.message === "" || health.state !== "HEALTHY" ? "" : ` (${health.message})`;
  if (mayTakeWork(node)) {
    return `node ${id} is approved, healthy and eligible, so it can take work${remark}${unknownText(node, "; but ")}.`;
  }
  const causes = obstaclesOf(node).map(({ text }) => text);
  const link = connection.state === "CONNECTED" ? "connected" : "not connected";
  const isWell = type === "COMPUTE" && health.state === "HEALTHY";
  const states = isWell ? `${link}${link === "connected" ? " and" : ", but"} healthy${remark}` : link;
  return `node ${id} cannot take work: ${causes.join(", and ")}${unknownText(node, "; and ")}. It is ${states}.`;
}

/** Text that says that new executions get no GPU while the node's GPUs are unknown; empty if they are known. */
function unknownText({ info }: ExplainedNode, link: string): string {
  const gpus = unknownResources(info ?? {}).find(({ resource }) => !isUsedByAll(resource));
  return gpus === undefined ? "" : `${link}no GPU is allocated while ${unknownCause(gpus)}`;
}

function unknownCause({ resource, reason }: UnknownResource): string {
  const what = resource === "gpus" ? "GPUs" : resource;
  return `its agent cannot determine its ${what}${reason === "" ? "" : ` (${reason})`}`;
}

function unknownObstacle(unknown: UnknownResource): Obstacle {
  return {
    state: "resources",
    reason: UNKNOWN_REASONS[unknown.resource],
    text: unknownCause(unknown),
    remedy: "fix the problem that the agent's log names; the agent tries again with each report",
    ...{ sinceMs: null, untilMs: null },
  };
}

function membershipObstacle({ membership }: ExplainedNode): readonly Obstacle[] {
  const { state, reason, message, sinceMs } = membership;
  const times = { sinceMs, untilMs: null };
  switch (state) {
    case "APPROVED":
      return [];
    case "PENDING": {
      const text = "it waits for an operator's approval";
      return [{ state: "membership", reason, text, remedy: "approve it", ...times }];
    }
    case "REJECTED": {
      const why = message === "" ? "" : ` (${message})`;
      if (isBanned(membership)) {
        const remedy = "lift the ban, then approve it";
        return [{ state: "membership", reason, text: `it was banned${why}`, remedy, ...times }];
      }
      return [{ state: "membership", reason, text: `it was rejected${why}`, remedy: "approve it", ...times }];
    }
  }
}

function healthObstacle({ health }: ExplainedNode): readonly Obstacle[] {
  const { state, reason, message, sinceMs } = health;
  if (state === "HEALTHY") return [];
  const why = message === "" ? stateWords(reason) : message;
  const isNew = reason === "NEVER_CONNECTED";
  return [
    {
      state: "health",
      reason,
      text: isNew
        ? "it has never connected"
        : `it is ${state === "UNKNOWN" ? "of unknown health" : "unhealthy"} (${why})`,
      remedy: healthRemedy(reason),
      ...{ sinceMs, untilMs: null },
    },
  ];
}

/** What to do on a machine that sends nothing. */
const CHECK_AGENT =
  "check on the machine that its agent runs and reaches the health endpoints: `systemctl status rollcall-agent`, and " +
  "the agent's log";

function healthRemedy(reason: string): string {
  switch (reason) {
    case "OPERATOR_MARKED":
      return "clear the mark";
    case "AGENT_SHUTDOWN":
      return "start its agent again";
    case "NEVER_CONNECTED":
      return CHECK_AGENT;
    case "DUPLICATE_IDENTITY":
      return DUPLICATE_REMEDY;
    default:
      return `${CHECK_AGENT}; one heartbeat makes the node healthy`;
  }
}

function holdObstacle(hold: Hold, ends: HoldEnds, isBack: boolean): Obstacle {
  const { kind, message, drained, unconfirmed, untilMs } = hold;
  const unconfirmedHold = isBack ? { ...UNCONFIRMED, remedy: UNCONFIRMED_BACK_REMEDY } : UNCONFIRMED;
  const { reason, text, remedy } = unconfirmed ? unconfirmedHold : drained ? DRAINED : HOLDS[kind];
  const why = message === "" ? "" : ` (${message})`;
  const isOver = drained === true || unconfirmed === true;
  const sinceMs = isOver ? (ends.drainedAtMs ?? hold.sinceMs) : hold.sinceMs;
  const endMs = kind === "OPERATOR" || kind === "CONDITION" ? (untilMs ?? null) : isOver ? null : ends[kind];
  return { state: "scheduling", reason, text: `${text}${why}`, remedy, sinceMs, untilMs: endMs };
}

const DUPLICATE_REMEDY =
  "stop the agent that runs on a copied state directory, remove that copy, and start the agent again; the hold ends " +
  "ten minutes after the last takeover";

const HOLDS: Readonly<Record<HoldKind, { reason: string; text: string; remedy: string }>> = {
  OPERATOR: {
    reason: "OPERATOR_CORDONED",
    text: "an operator cordoned it",
    remedy: "uncordon it",
  },
  FLAPPING: {
    reason: "NODE_FLAPPING",
    text: "it is held for flapping",
    remedy:
      "find out why its heartbeats stop and start; the hold is lifted once the node has been steady for flapping_hold",
  },
  HARDWARE: {
    reason: "HARDWARE_IN_DOUBT",
    text: "it is held because of its hardware",
    remedy: "repair the hardware, or accept it in its current state",
  },
  IDENTITY: {
    reason: "DUPLICATE_IDENTITY",
    text: "it is held because two agents use its identity",
    remedy: DUPLICATE_REMEDY,
  },
  DRAIN: { reason: "NODE_DRAINING", text: "an operator is draining it", remedy: "cancel its drain" },
  CONDITION: {
    reason: "NODE_CONDITION",
    text: "it is held because of a condition that it reports",
    remedy: "fix the problem that the condition names; the hold is lifted when the node no longer reports it",
  },
};

const UNCONFIRMED = {
  reason: "DRAIN_UNCONFIRMED",
  text: "an operator drained it, and its agent has not confirmed that its executions ended, so they may still run",
  remedy: "start its agent, which confirms or stops them; or make sure that the machine is off, and delete the node",
};

const UNCONFIRMED_BACK_REMEDY =
  "wait until its agent, which has reconnected, confirms or stops them; if it does not, make sure that the machine " +
  "is off, and delete the node";

const DRAINED = { reason: "NODE_DRAINED", text: "an operator drained it", remedy: "end its drain, or uncordon it" };
