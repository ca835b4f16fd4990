import { describe, expect, it } from "@jest/globals";
import { type Hardware, hardwareOf } from "./hardware.ts";
import {
  hardwareEvent,
  isUnexpectedReboot,
  missingHardware,
  type Trouble,
  troubledHealth,
} from "./hardware-conditions.ts";

const GPUS = [0, 1].map((index) => ({
  index,
  uuid: `GPU-${index}`,
  pciAddress: `0000:0${index}:00.0`,
}));
const APPROVED: Hardware = {
  cores: 16,
  memoryBytes: 100_000,
  diskBytes: 0,
  gpus: GPUS,
  vfioAddresses: [],
  areGpusKnown: true,
};

const parts = (
  present: Partial<Hardware>,
  baseline: Hardware | null = APPROVED,
  before: Parameters<typeof missingHardware>[2] = [],
) => missingHardware(baseline, { ...APPROVED, ...present }, before).map(({ part }) => part);

describe("missingHardware()", () => {
  it("should not change the missing GPUs while they cannot be determined", () => {
    const gone = { kind: "HARDWARE_DEGRADED", part: "gpu GPU-1", message: "" } as const;
    const cores = { kind: "HARDWARE_DEGRADED", part: "cores", message: "" } as const;
    for (const gpus of [[], GPUS.slice(0, 1), GPUS]) {
      const present = { gpus, areGpusKnown: false };
      expect(parts(present)).toEqual([]);
      expect(parts(present, APPROVED, [cores, gone])).toEqual(["gpu GPU-1"]);
    }
  });

  it.each<[string, Partial<Hardware>, readonly string[]]>([
    ["the same", {}, []],
    ["more of everything", { cores: 32, memoryBytes: 200_000 }, []],
    ["a core less", { cores: 15 }, ["cores"]],
    ["cores that were not told", { cores: 0 }, []],
    ["2 % less memory", { memoryBytes: 98_000 }, []],
    ["a little more than 2 % less", { memoryBytes: 97_999 }, ["memory"]],
    ["memory that was not told", { memoryBytes: 0 }, []],
    ["less disk", { diskBytes: 1 }, []],
    ["a GPU less", { gpus: GPUS.slice(0, 1) }, ["gpu GPU-1"]],
    ["no GPU", { gpus: [] }, ["gpu GPU-0", "gpu GPU-1"]],
    ["GPUs with other indices", { gpus: GPUS.map((gpu) => ({ ...gpu, index: gpu.index + 5 })) }, []],
    [
      "another GPU in the place of one",
      { gpus: [GPUS[0] ?? never(), { index: 1, uuid: "GPU-9", pciAddress: "0000:01:00.0" }] },
      ["gpu GPU-1"],
    ],
    ["a GPU set aside for virtual machines", { gpus: GPUS.slice(0, 1), vfioAddresses: ["0000:01:00.0"] }, []],
  ])("should decide on %s", (_, present, expected) => {
    expect(parts(present)).toEqual(expected);
  });

  it("should count GPUs that the driver no longer lists", () => {
    const nameless = GPUS.map(({ index }) => ({ index, uuid: "", pciAddress: "" }));
    const baseline = { ...APPROVED, gpus: nameless };
    expect(parts({ gpus: nameless.slice(1) }, baseline)).toEqual(["gpus"]);
    expect(parts({ gpus: nameless }, baseline)).toEqual([]);
  });

  it("should miss nothing where nothing was approved", () => {
    expect(parts({ cores: 1 }, null)).toEqual([]);
  });
});

describe("hardwareOf()", () => {
  it("should read protobuf JSON, whatever it lacks", () => {
    expect(hardwareOf({ cpu: { cores: 4 }, memoryBytes: "1024", gpus: [{ uuid: "a" }] })).toEqual({
      cores: 4,
      memoryBytes: 1024,
      diskBytes: 0,
      areGpusKnown: true,
      gpus: [{ index: 0, uuid: "a", pciAddress: "" }],
      vfioAddresses: [],
    });
    expect(hardwareOf(null)).toBeNull();
    expect(hardwareOf({ cpu: "x", gpus: 3, memoryBytes: "many" })).toMatchObject({
      cores: 0,
      memoryBytes: 0,
      gpus: [],
    });
  });
});

const trouble = (kind: Trouble["kind"], part: string): Trouble => ({ kind, part, message: part });

describe("hardwareEvent()", () => {
  const hot = trouble("GPU_TOO_HOT", "gpu 1");
  const gone = trouble("GPU_GONE", "gpu 0");
  const change = (before: readonly Trouble[], after: readonly Trouble[]) =>
    hardwareEvent({ subject: "n", actor: "replica:r", before, after });

  it("should be one for a new trouble, and one for the end of troubles", () => {
    expect(change([], [hot])).toMatchObject({
      type: "node.hardware.degraded",
      reason: "GPU_TOO_HOT",
      after: { troubles: ["GPU_TOO_HOT gpu 1"] },
    });
    expect(change([hot], [hot, gone])).toMatchObject({
      type: "node.hardware.degraded",
      reason: "GPU_GONE",
    });
    expect(change([hot, gone], [hot])).toMatchObject({
      type: "node.hardware.restored",
      message: "resolved: gpu 0",
    });
  });

  it("should be none when the same is wrong in other words", () => {
    expect(change([hot], [{ ...hot, message: "hotter" }])).toBeNull();
  });
});

describe("troubledHealth()", () => {
  const health = { sinceMs: 1, reason: "R", message: "m", actor: "a" };

  it("should give a healthy node the gravest reason, and leave an unhealthy one its own", () => {
    const troubles = [trouble("GPU_TOO_HOT", "hot"), trouble("HARDWARE_DEGRADED", "less")];
    expect(troubledHealth({ ...health, state: "HEALTHY" }, troubles)).toMatchObject({
      state: "HEALTHY",
      reason: "HARDWARE_DEGRADED",
      message: "less, hot",
    });
    expect(troubledHealth({ ...health, state: "UNKNOWN" }, troubles).reason).toBe("R");
  });
});

describe("isUnexpectedReboot()", () => {
  const before = { bootId: "a", fingerprint: "f", connectionReason: "STREAM_BROKEN" };

  it.each([
    ["another boot", before, { bootId: "b", fingerprint: "f" }, true],
    ["the same boot", before, { bootId: "a", fingerprint: "f" }, false],
    ["another machine", before, { bootId: "b", fingerprint: "g" }, false],
    ["after a goodbye", { ...before, connectionReason: "AGENT_SHUTDOWN" }, { bootId: "b", fingerprint: "f" }, false],
    ["a boot that is not told", before, { bootId: "", fingerprint: "f" }, false],
    ["the first session", { ...before, bootId: null }, { bootId: "b", fingerprint: "f" }, false],
  ])("should decide on %s", (_, was, is, expected) => {
    expect(isUnexpectedReboot(was, is)).toBe(expected);
  });
});

function never(): never {
  throw new Error("there are two");
}
