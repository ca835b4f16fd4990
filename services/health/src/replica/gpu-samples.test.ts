import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import type { Trouble } from "@rollcall/domain";
import { isInTrouble, type NodeGpus, seedGpus, takeGpuSample, troublesOf } from "./gpu-samples.ts";

const HOT: Trouble = { kind: "GPU_TOO_HOT", part: "gpu 1", message: "GPU 1 is too hot" };

/** A node that was just adopted. */
function liveNode(): NodeGpus {
  const policy = { gpuMaxCelsius: 85 };
  const gpuKnowledge = { samples: 0, isSeeded: false };
  return { gpus: [], gpuKnowledge, terms: { resolved: { policy } } };
}

const sample = (...celsius: number[]) =>
  create(ResourceUsageSchema, { gpus: celsius.map((temperatureCelsius, index) => ({ index, temperatureCelsius })) });

const kindsOf = (node: NodeGpus) => troublesOf(node)?.map(({ kind, part }) => `${kind} ${part}`) ?? null;

describe("takeGpuSample()", () => {
  it("should not consider GPUs gone while they cannot be read", () => {
    const node = liveNode();
    seedGpus(node, []);
    for (let count = 0; count < 3; count += 1) takeGpuSample(node, sample(60, 60));
    const unread = create(ResourceUsageSchema, { gpusUnknown: true });
    for (let count = 0; count < 9; count += 1) expect(takeGpuSample(node, unread)).toBe(false);
    expect(kindsOf(node)).toEqual([]);
    for (let count = 0; count < 9; count += 1) takeGpuSample(node, create(ResourceUsageSchema));
    expect(kindsOf(node)).toEqual(["GPU_GONE gpu 0", "GPU_GONE gpu 1"]);
  });
});

describe("troublesOf()", () => {
  it("should contradict the store after three samples, and not after the first", () => {
    const node = liveNode();
    seedGpus(node, []);
    for (let count = 0; count < 3; count += 1) {
      expect(kindsOf(node)).toBeNull();
      takeGpuSample(node, sample(60, 60));
    }
    expect(kindsOf(node)).toEqual([]);
  });

  it("should contradict the store only after reading it", () => {
    const node = liveNode();
    for (let count = 0; count < 3; count += 1) takeGpuSample(node, sample(60, 60));
    expect(kindsOf(node)).toBeNull();
    seedGpus(node, [HOT]);
    expect(kindsOf(node)).toEqual(["GPU_TOO_HOT gpu 1"]);
    // A second call has no effect, because only the node's own samples count now.
    seedGpus(node, []);
    expect(kindsOf(node)).toEqual(["GPU_TOO_HOT gpu 1"]);
  });

  it("should end a stored trouble after three samples without it", () => {
    const node = liveNode();
    seedGpus(node, [HOT]);
    expect(isInTrouble(node)).toBe(true);
    expect([1, 2, 3].map(() => takeGpuSample(node, sample(60, 60)))).toEqual([false, false, true]);
    expect(isInTrouble(node)).toBe(false);
    expect(kindsOf(node)).toEqual([]);
  });
});
