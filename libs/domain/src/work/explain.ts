import type { PlacementReason } from "./placement/node-class.ts";
import type { Refusals } from "./placement/refusals.ts";

const REASON_TEXTS: Readonly<Record<PlacementReason, string>> = {
  NODE_PENDING: "waiting for an operator's approval",
  NODE_REJECTED: "rejected",
  NODE_UNHEALTHY: "not healthy",
  NODE_CORDONED: "cordoned",
  NODE_FLAPPING: "held for flapping",
  NODE_HARDWARE_IN_DOUBT: "held because of its hardware",
  NODE_DUPLICATE_IDENTITY: "two agents use its identity",
  NODE_DRAINING: "draining or drained",
  NODE_HAS_CONDITION: "held because of a condition of the node",
  NODE_TAKES_NO_WORK: "takes no work",
  NOT_THE_NAMED_NODE: "not the node that the job names",
  LABELS_DO_NOT_MATCH: "labels do not match",
  OS_DOES_NOT_MATCH: "wrong operating system",
  ARCHITECTURE_DOES_NOT_MATCH: "wrong architecture",
  AGENT_TOO_OLD: "agent too old",
  EXECUTOR_NOT_OFFERED: "executor not offered",
  USER_NOT_ALLOWED: "user not allowed",
  DIRECTORY_NOT_ALLOWED: "directory not allowed",
  SECRET_NOT_ALLOWED: "the node's Work.SecretGrants do not allow the job to use its secrets",
  EXECUTOR_LACKS_SOMETHING: "executor does not support checks, secrets or stopOnAgentAfter",
  CORES_UNKNOWN: "cores unknown: the probe failed",
  MEMORY_UNKNOWN: "memory unknown: the probe failed",
  DISK_UNKNOWN: "disk unknown: the probe failed",
  GPUS_UNKNOWN: "GPUs unknown: the probe failed",
  GPU_MODEL_NOT_THERE: "no such GPU model",
  GPU_INDEX_NOT_THERE: "no GPU with this index",
  INSUFFICIENT_CORES: "insufficient cores",
  INSUFFICIENT_MEMORY: "insufficient memory",
  INSUFFICIENT_DISK: "insufficient disk",
  INSUFFICIENT_GPUS: "insufficient GPUs",
  TOO_MANY_EXECUTIONS: "too many executions",
  MAX_PER_NODE_REACHED: "maximum executions of this job reached",
  PORT_OR_GPU_TAKEN: "port or GPU taken",
};

/** Explain to people why nodes cannot run an execution. */
export function refusalText(reason: PlacementReason): string {
  return REASON_TEXTS[reason];
}

/**
 * Describe reasons with their counts in one line: "3 of 5 nodes: insufficient cores; 2 of 5 nodes: cordoned".
 */
export function refusalsText({ nodes, counts }: Refusals): string {
  if (nodes === 0) return "there are no nodes";
  const all = nodes === 1 ? "1 node" : `${nodes} nodes`;
  return counts.map(({ reason, nodes: of }) => `${of} of ${all}: ${REASON_TEXTS[reason]}`).join("; ");
}
