import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import type { Trouble } from "@rollcall/domain";
import { isInTrouble, type NodeGpus, seedGpus, takeGpuSample, troublesOf } from "./gpu-samples.ts";

const HOT: Trouble = { kind: "GPU_TOO_HOT", part: "gpu 1", message: "GPU 1 is too hot" };

/** A node that was just taken over. */
function heldNode(): NodeGpus {
  const policy = { gpuMaxCelsius: 85 };
  const gpuKnowledge = { samples: 0, isSeeded: false };
  return { gpus: [], gpuKnowledge, terms: { resolved: { policy } } };
}

const sample = (...celsius: number[]) =>
  create(ResourceUsageSchema, { gpus: celsius.map((temperatureCelsius, index) => ({ index, temperatureCelsius })) });

const kindsOf = (node: NodeGpus) => troublesOf(node)?.map(({ kind, part }) => `${kind} ${part}`) ?? null;

describe("takeGpuSample()", () => {
  it("should take no GPU for gone while they cannot be read", () => {
    const node = heldNode();
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
  it("should contradict the record after three samples, and not after the first", () => {
    const node = heldNode();
    seedGpus(node, []);
    for (let count = 0; count < 3; count += 1) {
      expect(kindsOf(node)).toBeNull();
      takeGpuSample(node, sample(60, 60));
    }
    expect(kindsOf(node)).toEqual([]);
  });

  it("should contradict the record only when it knows what the record says", () => {
    const node = heldNode();
    for (let count = 0; count < 3; count += 1) takeGpuSample(node, sample(60, 60));
    expect(kindsOf(node)).toBeNull();
    seedGpus(node, [HOT]);
    expect(kindsOf(node)).toEqual(["GPU_TOO_HOT gpu 1"]);
    // Once: from here on its own samples decide.
    seedGpus(node, []);
    expect(kindsOf(node)).toEqual(["GPU_TOO_HOT gpu 1"]);
  });

  it("should end a recorded trouble by three samples that say otherwise", () => {
    const node = heldNode();
    seedGpus(node, [HOT]);
    expect(isInTrouble(node)).toBe(true);
    expect([1, 2, 3].map(() => takeGpuSample(node, sample(60, 60)))).toEqual([false, false, true]);
    expect(isInTrouble(node)).toBe(false);
    expect(kindsOf(node)).toEqual([]);
  });
});
