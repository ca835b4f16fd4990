import { isUsedByAll, UNKNOWN_REASONS, type WorkResource } from "../../conditions/hardware.ts";
import { matches } from "../../labels/selectors.ts";
import { isVersionAtLeast } from "../agent-version.ts";
import type { WorkHold, WorkNode } from "../work-node.ts";
import type { PlacementRequest } from "./placement-request.ts";
import { canUseSecret, type NodeSecret } from "./secret-grants.ts";

/** Why a node cannot run an execution, for machines. */
export type PlacementReason =
  | "NODE_PENDING"
  | "NODE_REJECTED"
  | "NODE_UNHEALTHY"
  | "NODE_CORDONED"
  | "NODE_FLAPPING"
  | "NODE_HARDWARE_IN_DOUBT"
  | "NODE_DUPLICATE_IDENTITY"
  | "NODE_DRAINING"
  | "NODE_HAS_CONDITION"
  | "NODE_TAKES_NO_WORK"
  | "NOT_THE_NAMED_NODE"
  | "LABELS_DO_NOT_MATCH"
  | "OS_DOES_NOT_MATCH"
  | "ARCHITECTURE_DOES_NOT_MATCH"
  | "AGENT_TOO_OLD"
  | "EXECUTOR_NOT_OFFERED"
  | "USER_NOT_ALLOWED"
  | "DIRECTORY_NOT_ALLOWED"
  | "SECRET_NOT_ALLOWED"
  | "EXECUTOR_LACKS_SOMETHING"
  | "CORES_UNKNOWN"
  | "MEMORY_UNKNOWN"
  | "DISK_UNKNOWN"
  | "GPUS_UNKNOWN"
  | "GPU_MODEL_NOT_THERE"
  | "GPU_INDEX_NOT_THERE"
  | "INSUFFICIENT_CORES"
  | "INSUFFICIENT_MEMORY"
  | "INSUFFICIENT_DISK"
  | "INSUFFICIENT_GPUS"
  | "TOO_MANY_EXECUTIONS"
  | "MAX_PER_NODE_REACHED"
  | "PORT_OR_GPU_TAKEN";

/** The properties of a node that constraints depend on. Nodes with equal properties form a class. */
export interface ClassFacts {
  /** Why nodes of the class take no work; empty if they do take work. */
  readonly obstacles: readonly PlacementReason[];
  readonly isConnected: boolean;
  /** Whether no drain or FLAPPING hold was removed recently. */
  readonly isCalm: boolean;
  readonly os: string;
  readonly architecture: string;
  readonly agentVersion: string;
  readonly executors: readonly string[];
  readonly users: readonly string[];
  readonly directories: readonly string[];
  /** Features that the executors lack. */
  readonly lacks: readonly string[];
  readonly secrets: readonly NodeSecret[];
  /** The resources whose limits the machine enforces. */
  readonly limits: readonly string[];
  /** The index and model of each GPU. */
  readonly gpus: readonly (readonly [number, string])[];
  /** Resources that the agent cannot determine. */
  readonly unknown: readonly WorkResource[];
  /** The labels whose keys selectors of jobs use, sorted by key. */
  readonly labels: readonly (readonly [string, string])[];
  readonly grantedLabels: readonly (readonly [string, string])[];
}

/** Determine the class of a node. `labelKeys` are all label keys that selectors use, sorted. */
export function classFacts(node: WorkNode, labelKeys: readonly string[]): ClassFacts {
  const { capacity } = node;
  return {
    obstacles: obstaclesToWork(node),
    isConnected: node.connection === "CONNECTED",
    isCalm: node.disturbedUntilMs === null,
    os: node.os,
    architecture: node.architecture,
    agentVersion: node.agentVersion,
    executors: capacity?.executors ?? [],
    users: capacity?.users ?? [],
    directories: capacity?.directories ?? [],
    lacks: capacity?.lacks ?? [],
    secrets: capacity?.secrets ?? [],
    limits: capacity?.limits ?? [],
    gpus: node.gpus.map(({ index, model }) => [index, model]),
    unknown: node.unknown,
    labels: pick(node.labels, labelKeys),
    grantedLabels: pick(node.grantedLabels, labelKeys),
  };
}

/** The reasons why a node takes no work, whatever is requested; empty if it takes work. */
export function obstaclesToWork(node: WorkNode): readonly PlacementReason[] {
  const found: PlacementReason[] = [];
  if (node.membership === "PENDING") found.push("NODE_PENDING");
  if (node.membership === "REJECTED") found.push("NODE_REJECTED");
  if (node.health !== "HEALTHY") found.push("NODE_UNHEALTHY");
  found.push(...node.holds.map((hold) => HOLD_REASONS[hold]));
  if (node.type !== "COMPUTE" || node.capacity === null || node.capacity.executors.length === 0) {
    found.push("NODE_TAKES_NO_WORK");
  }
  found.push(...node.unknown.filter(isUsedByAll).map((one) => UNKNOWN_REASONS[one]));
  return found;
}

/** Why nodes of a class do not match a request, regardless of their free resources; empty if they match. */
export function mismatches(facts: ClassFacts, { spec, selector, needs }: PlacementRequest): readonly PlacementReason[] {
  const { constraints, matchAgentLabels, executor, user, directory, secrets, owner, name: job } = spec;
  const found: PlacementReason[] = [];
  const labels = new Map(matchAgentLabels ? facts.labels : facts.grantedLabels);
  if (!matches(selector, labels)) found.push("LABELS_DO_NOT_MATCH");
  if (constraints.os !== null && constraints.os !== facts.os) found.push("OS_DOES_NOT_MATCH");
  if (constraints.architecture !== null && constraints.architecture !== facts.architecture) {
    found.push("ARCHITECTURE_DOES_NOT_MATCH");
  }
  const least = constraints.minAgentVersion;
  if (least !== null && !isVersionAtLeast(facts.agentVersion, least)) found.push("AGENT_TOO_OLD");
  if (!facts.executors.includes(executor)) found.push("EXECUTOR_NOT_OFFERED");
  if (user !== null && !facts.users.includes(user)) found.push("USER_NOT_ALLOWED");
  if (directory !== null && !facts.directories.some((allowed) => isWithin(directory, allowed))) {
    found.push("DIRECTORY_NOT_ALLOWED");
  }
  if (!secrets.every((secret) => canUseSecret(facts.secrets, secret, { owner, job }))) found.push("SECRET_NOT_ALLOWED");
  if (needs.some((need) => facts.lacks.includes(need))) found.push("EXECUTOR_LACKS_SOMETHING");
  found.push(...gpuMismatches(facts, spec));
  return found;
}

/** Check the requested GPU model and indices. While GPUs are unknown, a GPU that is not listed may still exist. */
function gpuMismatches(
  { gpus, unknown }: ClassFacts,
  { constraints, resources }: PlacementRequest["spec"],
): readonly PlacementReason[] {
  const { gpuModel, gpuIndices } = constraints;
  const found: PlacementReason[] = [];
  if (gpuModel !== null && gpus.filter(([, model]) => model.includes(gpuModel)).length < resources.gpus) {
    found.push("GPU_MODEL_NOT_THERE");
  }
  if (gpuIndices.some((wanted) => !gpus.some(([index]) => index === wanted))) found.push("GPU_INDEX_NOT_THERE");
  return found.length > 0 && unknown.includes("gpus") ? [UNKNOWN_REASONS.gpus] : found;
}

/**
 * Whether machines of a class limit executions to the resources they request, so that they cannot use resources granted
 * to other executions.
 */
export function enforces({ limits }: ClassFacts, { amounts }: PlacementRequest): boolean {
  return (
    (amounts.millicores === 0 || limits.includes("cpu")) && (amounts.memoryBytes === 0 || limits.includes("memory"))
  );
}

const HOLD_REASONS: Readonly<Record<WorkHold, PlacementReason>> = {
  OPERATOR: "NODE_CORDONED",
  FLAPPING: "NODE_FLAPPING",
  HARDWARE: "NODE_HARDWARE_IN_DOUBT",
  IDENTITY: "NODE_DUPLICATE_IDENTITY",
  DRAIN: "NODE_DRAINING",
  CONDITION: "NODE_HAS_CONDITION",
};

function pick(labels: ReadonlyMap<string, string>, keys: readonly string[]): (readonly [string, string])[] {
  return keys.flatMap((key) => {
    const value = labels.get(key);
    return value === undefined ? [] : [[key, value] as const];
  });
}

function isWithin(directory: string, allowed: string): boolean {
  const parent = allowed.endsWith("/") ? allowed : `${allowed}/`;
  return directory === allowed || `${directory}/`.startsWith(parent);
}
