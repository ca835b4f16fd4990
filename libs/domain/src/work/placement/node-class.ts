import { matches } from "../../labels/selectors.ts";
import { isVersionAtLeast } from "../agent-version.ts";
import type { WorkHold, WorkNode } from "../work-node.ts";
import type { PlacementRequest } from "./placement-request.ts";
import { canUseSecret, type NodeSecret } from "./secret-grants.ts";

/** Why a node will not do, for machines. */
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

/** What constraints see of a node. Nodes of which it is equal are of one class. */
export interface ClassFacts {
  /** Why nodes of the class take no work at all; empty when they do. */
  readonly obstacles: readonly PlacementReason[];
  readonly isConnected: boolean;
  /** Whether no drain or hold for flapping was lifted recently. */
  readonly isCalm: boolean;
  readonly os: string;
  readonly architecture: string;
  readonly agentVersion: string;
  readonly executors: readonly string[];
  readonly users: readonly string[];
  readonly directories: readonly string[];
  /** What its executors do not do. */
  readonly lacks: readonly string[];
  readonly secrets: readonly NodeSecret[];
  /** What the machine enforces. */
  readonly limits: readonly string[];
  /** Index and model of each. */
  readonly gpus: readonly (readonly [number, string])[];
  readonly areGpusKnown: boolean;
  /** Those labels that selectors of jobs ask for, sorted by key. */
  readonly labels: readonly (readonly [string, string])[];
  readonly grantedLabels: readonly (readonly [string, string])[];
}

/** Sort a node by what constraints can see of it. `labelKeys`, sorted, are all that selectors ask for. */
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
    areGpusKnown: node.areGpusKnown,
    labels: pick(node.labels, labelKeys),
    grantedLabels: pick(node.grantedLabels, labelKeys),
  };
}

/** Why a node takes no work, whatever is asked of it; empty when it does. */
export function obstaclesToWork(node: WorkNode): readonly PlacementReason[] {
  const found: PlacementReason[] = [];
  if (node.membership === "PENDING") found.push("NODE_PENDING");
  if (node.membership === "REJECTED") found.push("NODE_REJECTED");
  if (node.health !== "HEALTHY") found.push("NODE_UNHEALTHY");
  found.push(...node.holds.map((hold) => HOLD_REASONS[hold]));
  if (node.type !== "COMPUTE" || node.capacity === null || node.capacity.executors.length === 0) {
    found.push("NODE_TAKES_NO_WORK");
  }
  return found;
}

/** Why nodes of a class do not match a request, whatever is free there; empty when they do. */
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

/** A GPU that is missing from the last known list can still exist. */
function gpuMismatches(
  { gpus, areGpusKnown }: ClassFacts,
  { constraints, resources }: PlacementRequest["spec"],
): readonly PlacementReason[] {
  const { gpuModel, gpuIndices } = constraints;
  const found: PlacementReason[] = [];
  if (gpuModel !== null && gpus.filter(([, model]) => model.includes(gpuModel)).length < resources.gpus) {
    found.push("GPU_MODEL_NOT_THERE");
  }
  if (gpuIndices.some((wanted) => !gpus.some(([index]) => index === wanted))) found.push("GPU_INDEX_NOT_THERE");
  return areGpusKnown || found.length === 0 ? found : ["GPUS_UNKNOWN"];
}

/** Whether machines of a class keep executions within what they ask for, and so from taking what others were given. */
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
