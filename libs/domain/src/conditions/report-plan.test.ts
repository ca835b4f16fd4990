import { describe, expect, it } from "@jest/globals";
import { hardwareIn } from "./hardware.ts";
import { weighReport } from "./report-plan.ts";

const INFO = { cpu: { cores: 4 }, memoryBytes: "100000", hostname: "h" };
const BEFORE = { membership: "APPROVED", approved: INFO, info: INFO, missing: [] } as const;

describe("weighReport()", () => {
  it.each<[string, typeof INFO, string]>([
    ["a fact that changed", { ...INFO, hostname: "other" }, "save"],
    ["the same in other order", { hostname: "h", memoryBytes: "100000", cpu: { cores: 4 } }, "save"],
    ["memory that moved by little", { ...INFO, memoryBytes: "99000" }, "known"],
    ["memory that grew by more", { ...INFO, memoryBytes: "110000" }, "save-if-rested"],
    ["memory that is missing", { ...INFO, memoryBytes: "90000" }, "save"],
    ["cores that are missing", { ...INFO, cpu: { cores: 3 } }, "save"],
  ])("should decide on %s", (_, info, decision) => {
    expect(weighReport(BEFORE, info).decision).toBe(decision);
  });

  describe("of a node that was approved while its GPUs were unknown", () => {
    const unknownFacts = [{ fact: "gpus", reason: "nvidia-smi gave no answer (too slow)" }];
    const gpu = (index: number) => ({ index, uuid: `GPU-${index}` });
    const before = { ...BEFORE, approved: hardwareIn({ ...INFO, unknownFacts }), info: { ...INFO, unknownFacts } };

    it("should take the GPUs that are known first as approved, and miss them from then on", () => {
      const known = { ...INFO, gpus: [gpu(0), gpu(1)] };
      const first = weighReport(before, known);
      expect(first).toMatchObject({
        decision: "save",
        missing: [],
        approved: { ...hardwareIn(INFO), gpus: known.gpus },
      });
      expect(first.approved).not.toHaveProperty("unknownFacts");
      const next = { ...BEFORE, approved: first.approved, info: known };
      expect(weighReport(next, { ...INFO, gpus: [gpu(1)] })).toMatchObject({
        missing: [{ part: "gpu GPU-0" }],
        approved: null,
      });
    });

    it("should take nothing while they stay unknown, and none once there are none", () => {
      expect(weighReport(before, { ...INFO, hostname: "other", unknownFacts }).approved).toBeNull();
      expect(weighReport(before, INFO).approved).toEqual({ cpu: INFO.cpu, memoryBytes: INFO.memoryBytes, gpus: [] });
    });

    it("should keep the last known GPUs of one vendor when those of the other are known first", () => {
      const gpus = [gpu(0), gpu(1)];
      const approved = hardwareIn({ ...INFO, gpus, unknownFacts });
      expect(weighReport({ ...before, approved }, { ...INFO, gpus: [gpu(1), gpu(2)] })).toMatchObject({
        approved: { gpus: [gpu(0), gpu(1), gpu(2)] },
        missing: [{ part: "gpu GPU-0" }],
      });
    });
  });

  it("should take an amount as approved that is known for the first time", () => {
    const plan = weighReport({ ...BEFORE, approved: {}, info: { hostname: "h" } }, { ...INFO, diskBytes: "7" });
    expect(plan.approved).toEqual({ ...hardwareIn(INFO), diskBytes: "7" });
  });

  it("should record approved hardware if there was none: the last report of an approved node, or this one", () => {
    expect(weighReport({ ...BEFORE, approved: null }, { ...INFO, cpu: { cores: 3 } })).toMatchObject({
      approved: { cpu: { cores: 4 }, memoryBytes: "100000" },
      missing: [{ part: "cores" }],
    });
    expect(weighReport({ ...BEFORE, approved: null, info: null }, INFO)).toMatchObject({
      approved: { cpu: { cores: 4 } },
      missing: [],
    });
    expect(weighReport({ ...BEFORE, membership: "PENDING", approved: null }, INFO).approved).toBeNull();
    expect(weighReport(BEFORE, INFO).approved).toBeNull();
  });
});
