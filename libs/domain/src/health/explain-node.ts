import { isBanned } from "../membership/ban.ts";
import { DUPLICATE_QUIET_MS } from "../membership/duplicate-identity.ts";
import type { NodeRecord } from "../nodes/node-record.ts";
import type { HealthPolicy } from "../policy/policy-fields.ts";
import {
  type Connection,
  type Health,
  type Hold,
  type HoldKind,
  type Membership,
  mayTakeWork,
  type NodeType,
  type Scheduling,
} from "../states.ts";
import { steadySinceMs } from "./flapping.ts";

/** What a node is at present. NodeRecord is one. */
export interface ExplainedNode {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Connection;
  /** The effective one. */
  readonly health: Health;
  readonly scheduling: Scheduling;
}

/** One thing that keeps a node from taking work. */
export interface Obstacle {
  readonly state: "type" | "membership" | "health" | "scheduling";
  readonly reason: string;
  readonly text: string;
  /** What would change it; empty when nothing does. */
  readonly remedy: string;
  /** Since when it holds; null for unknown. */
  readonly sinceMs: number | null;
  /** Until when it can, unless it happens again; null where no time ends it. */
  readonly untilMs: number | null;
}

/** Times at which holds of a node end; null where no time ends them. */
export interface HoldEnds {
  readonly FLAPPING: number | null;
  readonly HARDWARE: number | null;
  readonly IDENTITY: number | null;
  /** The deadline of a drain that is in progress. */
  readonly DRAIN: number | null;
}

const NO_HOLD_ENDS: HoldEnds = { FLAPPING: null, HARDWARE: null, IDENTITY: null, DRAIN: null };

/** What determines when holds end. */
export interface HoldEndFacts extends Pick<NodeRecord, "history" | "rebootedAtMs" | "duplicate"> {
  readonly policy: Pick<HealthPolicy, "flappingHoldMs" | "rebootHoldMs">;
  readonly drainDeadlineAtMs: number | null;
  /** Whether the hardware of the node is in doubt for another reason than a reboot. */
  readonly hasTroubles: boolean;
}

/** Determine when the holds of a node end if nothing happens again. */
export function holdEnds(facts: HoldEndFacts): HoldEnds {
  const { history, rebootedAtMs, duplicate, policy, drainDeadlineAtMs, hasTroubles } = facts;
  const steadyMs = steadySinceMs(history);
  return {
    FLAPPING: steadyMs === null ? null : steadyMs + policy.flappingHoldMs,
    HARDWARE: rebootedAtMs === null || hasTroubles ? null : rebootedAtMs + policy.rebootHoldMs,
    IDENTITY: duplicate === null ? null : Math.max(...duplicate.map(({ atMs }) => atMs)) + DUPLICATE_QUIET_MS,
    DRAIN: drainDeadlineAtMs,
  };
}

/** Everything that keeps a node from taking work; empty when it may. */
export function obstaclesOf(node: ExplainedNode, ends: HoldEnds = NO_HOLD_ENDS): readonly Obstacle[] {
  if (node.type === "ORCHESTRATOR") {
    const text = "it is a process of the control plane, to which no work ever comes";
    return [{ state: "type", reason: "NODE_IS_ORCHESTRATOR", text, remedy: "", sinceMs: null, untilMs: null }];
  }
  return [
    ...membershipObstacle(node),
    ...healthObstacle(node),
    ...node.scheduling.holds.map((hold) => holdObstacle(hold, ends)),
  ];
}

/** Why a node is in the state that it is in, and whether it may take work, in one sentence. */
export function summarizeNode(node: ExplainedNode): string {
  const { id, membership, connection, health, scheduling } = node;
  const states = [membership.state, connection.state, health.state, scheduling.state].join(", ");
  if (mayTakeWork(node)) {
    const remark = node.health.message === "" ? "" : ` (${node.health.message})`;
    return `node ${id} is ${states}, so it may take work${remark}.`;
  }
  const causes = obstaclesOf(node).map(({ text }) => text);
  return `node ${id} is ${states}; it may take no work because ${causes.join(", and ")}.`;
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
  const why = message === "" ? reason : message;
  return [
    {
      state: "health",
      reason,
      text: `it is ${state} (${why})`,
      remedy: healthRemedy(reason),
      ...{ sinceMs, untilMs: null },
    },
  ];
}

function healthRemedy(reason: string): string {
  switch (reason) {
    case "OPERATOR_MARKED":
      return "clear the mark";
    case "AGENT_SHUTDOWN":
      return "start its agent again";
    case "NEVER_CONNECTED":
      return "see that its agent runs and reaches the health endpoints";
    case "DUPLICATE_IDENTITY":
      return DUPLICATE_REMEDY;
    default:
      return "see that its agent runs and reaches the health endpoints: one heartbeat on a new stream makes it HEALTHY";
  }
}

function holdObstacle({ kind, message, drained, unconfirmed, sinceMs, untilMs }: Hold, ends: HoldEnds): Obstacle {
  const { reason, text, remedy } = unconfirmed ? UNCONFIRMED : drained ? DRAINED : HOLDS[kind];
  const why = message === "" ? "" : ` (${message})`;
  const isOver = drained === true || unconfirmed === true;
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
    remedy: "find out why its heartbeats come and go; it is lifted once the node has been steady for flapping_hold",
  },
  HARDWARE: {
    reason: "HARDWARE_IN_DOUBT",
    text: "it is held for its hardware",
    remedy: "repair the hardware, or accept it as it is",
  },
  IDENTITY: {
    reason: "DUPLICATE_IDENTITY",
    text: "it is held because two agents use its identity",
    remedy: DUPLICATE_REMEDY,
  },
  DRAIN: { reason: "NODE_DRAINING", text: "an operator drains it", remedy: "cancel its drain" },
  CONDITION: {
    reason: "NODE_CONDITION",
    text: "it is held for a condition that it reports",
    remedy: "repair what the condition names; the hold is lifted when the node no longer reports it",
  },
};

const UNCONFIRMED = {
  reason: "DRAIN_UNCONFIRMED",
  text: "an operator drained it, and its agent has not confirmed that its executions ended, so they may still run",
  remedy: "start its agent, which confirms or stops them; or make sure that the machine is off, and delete the node",
};

const DRAINED = { reason: "NODE_DRAINED", text: "an operator drained it", remedy: "end its drain, or uncordon it" };
