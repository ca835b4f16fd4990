import { describe, expect, it } from "@jest/globals";
import { FAILING_FACTS, H100_FACTS, NO_DEVICES, NO_DRIVER } from "../testing/recordings/gpu-tools.ts";
import { NVIDIA_FACTS_ARGS, parseNvidiaFacts } from "./nvidia.ts";

describe("parseNvidiaFacts()", () => {
  it("should read a server with eight GPUs", () => {
    const gpus = parseNvidiaFacts(H100_FACTS);
    expect(gpus.map((gpu) => gpu.index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(gpus[4]).toEqual({
      vendor: "NVIDIA",
      index: 4,
      name: "NVIDIA H100 80GB HBM3",
      uuid: "GPU-4a2c1e0f-6b1d-0c55-9f8e-1d2b3c4d5e64",
      driverVersion: "535.161.08",
      pciAddress: "0000:9d:00.0",
      memoryMib: 81_559,
      unusable: "",
    });
  });

  it("should keep working GPUs if another one has failed", () => {
    const gpus = parseNvidiaFacts(FAILING_FACTS);
    expect(gpus.map((gpu) => gpu.memoryMib)).toEqual([32_510, undefined]);
    expect(gpus[1]?.uuid).toBe("GPU-9bd0e64c-5f0a-7c6e-8a0c-4f6b2b1c9a12");
  });

  it.each([
    ["no driver", NO_DRIVER],
    ["no devices", NO_DEVICES],
    ["nothing", ""],
    ["garbage", "\0\u0001,,,,,\n1,2\nx, y, z, a, b, c"],
  ])("should read %s as no GPUs", (_, stdout) => {
    expect(parseNvidiaFacts(stdout)).toEqual([]);
  });

  it("should read every GPU by index, whatever the order of the lines", () => {
    const reversed = H100_FACTS.trim().split("\n").reverse().join("\r\n");
    expect(parseNvidiaFacts(reversed)).toEqual(parseNvidiaFacts(H100_FACTS));
  });
});

describe("NVIDIA_FACTS_ARGS", () => {
  it("should ask for lines without header and units", () => {
    expect(NVIDIA_FACTS_ARGS).toEqual([
      "--query-gpu=index,name,uuid,driver_version,pci.bus_id,memory.total,mig.mode.current",
      "--format=csv,noheader,nounits",
    ]);
  });
});
