import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import {
  afterGpuSample,
  gpusInTrouble,
  gpuTroubles,
  type HealthPolicy,
  SAMPLES_TO_CONVINCE,
  type Trouble,
} from "@rollcall/domain";
import type { LiveNode } from "./live-node.ts";

/** The part of a live node that concerns its GPUs. */
export type NodeGpus = Pick<LiveNode, "gpus" | "gpuKnowledge"> & {
  readonly terms: { readonly resolved: { readonly policy: Pick<HealthPolicy, "gpuMaxCelsius"> } };
};

/**
 * Update a node's GPUs from a sample. A sample whose GPUs could not be read is ignored. Part of the hot path: a
 * sample without changes allocates nothing. Returns whether a trouble began or ended.
 */
export function takeGpuSample(
  node: NodeGpus,
  { gpus: sample, gpusUnknown }: Pick<ResourceUsage, "gpus" | "gpusUnknown">,
): boolean {
  if (gpusUnknown) return false;
  const { gpus, gpuKnowledge } = node;
  if (gpus.length === 0 && sample.length === 0) return false;
  const maxCelsius = node.terms.resolved.policy.gpuMaxCelsius;
  node.gpus = afterGpuSample(gpus, sample, maxCelsius);
  const isLearning = gpuKnowledge.samples < SAMPLES_TO_CONVINCE;
  if (isLearning) node.gpuKnowledge = { ...gpuKnowledge, samples: gpuKnowledge.samples + 1 };
  if (node.gpus === gpus) return false;
  const was = gpus.filter(isWrong);
  const is = node.gpus.filter(isWrong);
  const isSame =
    was.length === is.length &&
    was.every(({ index, isGone, isHot }) =>
      is.some((it) => it.index === index && it.isGone === isGone && it.isHot === isHot),
    );
  return !isSame;
}

/** Whether a GPU of a node is in trouble, as far as this replica knows. */
export function isInTrouble({ gpus }: NodeGpus): boolean {
  return gpus.some(isWrong);
}

/** The troubles of a node's GPUs; null while this replica knows too little to overrule the store. */
export function troublesOf(node: NodeGpus): readonly Trouble[] | null {
  const { samples, isSeeded } = node.gpuKnowledge;
  if (!isSeeded || samples < SAMPLES_TO_CONVINCE) return null;
  return gpuTroubles(node.gpus, node.terms.resolved.policy.gpuMaxCelsius);
}

/**
 * Start from the troubles that the store had when this replica took the node. From then on, only the node's own
 * samples count. Later calls do nothing.
 */
export function seedGpus(node: NodeGpus, recorded: readonly Trouble[]): void {
  if (node.gpuKnowledge.isSeeded) return;
  node.gpuKnowledge = { ...node.gpuKnowledge, isSeeded: true };
  const known = gpusInTrouble(recorded);
  if (known.length === 0) return;
  const others = node.gpus.filter((gpu) => !known.some(({ index }) => index === gpu.index));
  const merged = known.map((gpu) => {
    const seen = node.gpus.find(({ index }) => index === gpu.index);
    return { ...gpu, celsius: seen?.celsius ?? null };
  });
  node.gpus = [...others, ...merged].sort((left, right) => left.index - right.index);
}

function isWrong({ isGone, isHot }: { readonly isGone: boolean; readonly isHot: boolean }): boolean {
  return isGone || isHot;
}
