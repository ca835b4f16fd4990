import { unknownResources } from "../conditions/hardware.ts";
import { isJsonObject, type Json, type JsonObject } from "../events/events.ts";
import { effectiveLabels } from "../labels/labels.ts";
import type { Node } from "../nodes/node.ts";
import { type AllocatableFactors, isUsableGpu, type NodeCapacity, type NodeGpu, type WorkNode } from "./work-node.ts";

/** The fields of a node that placement uses. */
export type PlacedNode = Pick<
  Node,
  "id" | "type" | "membership" | "connection" | "health" | "holds" | "disturbedAtMs" | "labels" | "info" | "loss"
>;

export const NO_OVERCOMMIT: AllocatableFactors = { cores: 1, memory: 1, disk: 1 };

/** How long a node counts as disturbed after a drain or a FLAPPING hold was removed, in milliseconds. */
const DISTURBED_MS = 600_000;

/** Extract what placement needs from a node. Invalid values are skipped. */
export function toWorkNode(node: PlacedNode, factors: AllocatableFactors): WorkNode {
  const info = node.info ?? {};
  const os = isJsonObject(info.os) ? info.os : {};
  return {
    id: node.id,
    type: node.type,
    membership: node.membership.state,
    connection: node.connection.state,
    health: node.health.state,
    holds: node.holds.map(({ kind }) => kind),
    conditionSinceMs: node.holds.find(({ kind }) => kind === "CONDITION")?.sinceMs ?? null,
    disturbedUntilMs: node.disturbedAtMs === null ? null : node.disturbedAtMs + DISTURBED_MS,
    reactionAllowed: node.loss.reaction === "ALLOWED",
    labels: labelsOf(node.labels),
    grantedLabels: labelsOf(node.labels.filter(({ tier }) => tier !== "agent")),
    os: toText(os.family),
    architecture: toText(os.architecture),
    agentVersion: toText(info.agentVersion),
    capacity: isJsonObject(info.work) ? capacityOf(info.work, factors) : null,
    gpus: toList(info.gpus).filter(isJsonObject).flatMap(gpuOf),
    unknown: unknownResources(info).map(({ resource }) => resource),
  };
}

function capacityOf(work: JsonObject, factors: AllocatableFactors): NodeCapacity {
  return {
    executors: toTexts(work.executors),
    millicores: Math.floor(toNumber(work.millicores) * factors.cores),
    memoryBytes: Math.floor(toNumber(work.memoryBytes) * factors.memory),
    diskBytes: Math.floor(toNumber(work.diskBytes) * factors.disk),
    portMin: toNumber(work.portMin),
    portMax: toNumber(work.portMax),
    limits: toTexts(work.limits),
    users: toTexts(work.users),
    directories: toTexts(work.directories),
    lacks: toTexts(work.lacks),
    secrets: toList(work.secrets)
      .filter(isJsonObject)
      .map(({ name, grants }) => ({ name: toText(name), grants: toTexts(grants) })),
  };
}

/**
 * Read a GPU that can be granted. A GPU without a UUID cannot be identified, and a GPU in MIG mode cannot be used.
 */
function gpuOf(gpu: JsonObject): readonly NodeGpu[] {
  const uuid = toText(gpu.uuid);
  if (!isUsableGpu({ uuid, unusable: toText(gpu.unusable) })) return [];
  return [{ index: toNumber(gpu.index), uuid, model: toText(gpu.name).toLowerCase() }];
}

function labelsOf(labels: PlacedNode["labels"]): ReadonlyMap<string, string> {
  return new Map(effectiveLabels(labels).map(({ key, value }) => [key, value]));
}

function toTexts(value: Json | undefined): readonly string[] {
  return toList(value).filter((one) => typeof one === "string");
}

function toList(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** Convert a number in protobuf JSON, which encodes 64-bit numbers as strings and omits 0. */
function toNumber(value: Json | undefined): number {
  const number = typeof value === "string" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : 0;
}

function toText(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
