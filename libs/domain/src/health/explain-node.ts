import { isBanned } from "../membership/ban.ts";
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
}

/** Everything that keeps a node from taking work; empty when it may. */
export function obstaclesOf(node: ExplainedNode): readonly Obstacle[] {
  if (node.type === "ORCHESTRATOR") {
    const text = "it is a process of the control plane, to which no work ever comes";
    return [{ state: "type", reason: "NODE_IS_ORCHESTRATOR", text, remedy: "" }];
  }
  return [...membershipObstacle(node), ...healthObstacle(node), ...node.scheduling.holds.map(holdObstacle)];
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
  const { state, reason, message } = membership;
  switch (state) {
    case "APPROVED":
      return [];
    case "PENDING": {
      const text = "it waits for an operator's approval";
      return [{ state: "membership", reason, text, remedy: "approve it" }];
    }
    case "REJECTED": {
      const why = message === "" ? "" : ` (${message})`;
      if (isBanned(membership)) {
        const remedy = "lift the ban, then approve it";
        return [{ state: "membership", reason, text: `it was banned${why}`, remedy }];
      }
      return [{ state: "membership", reason, text: `it was rejected${why}`, remedy: "approve it" }];
    }
  }
}

function healthObstacle({ health }: ExplainedNode): readonly Obstacle[] {
  const { state, reason, message } = health;
  if (state === "HEALTHY") return [];
  const why = message === "" ? reason : message;
  return [
    {
      state: "health",
      reason,
      text: `it is ${state} (${why})`,
      remedy: healthRemedy(reason),
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

function holdObstacle({ kind, message, drained, unconfirmed }: Hold): Obstacle {
  const { reason, text, remedy } = unconfirmed ? UNCONFIRMED : drained ? DRAINED : HOLDS[kind];
  const why = message === "" ? "" : ` (${message})`;
  return { state: "scheduling", reason, text: `${text}${why}`, remedy };
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
