import { afterEach, describe, expect, it } from "@jest/globals";
import type { CommandResult } from "../machine/run-command.ts";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { H100_FACTS, MI250_FACTS, NO_DRIVER } from "../testing/recordings/gpu-tools.ts";
import { createGpuReader } from "./gpus.ts";

const HANGS: CommandResult = { kind: "no-answer", cause: "timeout" };

describe("createGpuReader()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it("should list NVIDIA's GPUs before AMD's", async () => {
    planted = await plantMachine({
      programs: { "rocm-smi": MI250_FACTS, "nvidia-smi": H100_FACTS },
    });
    const gpus = await createGpuReader(planted.machine).read();
    expect(gpus.map((gpu) => gpu.vendor)).toEqual([...Array(8).fill("NVIDIA"), "AMD", "AMD"]);
  });

  it("should use no index twice, and keep each when the other vendor's tool fails", async () => {
    const card = (address: string, vendor: string, pciClass: string) => ({
      [`/sys/bus/pci/devices/${address}/vendor`]: `${vendor}\n`,
      [`/sys/bus/pci/devices/${address}/class`]: `${pciClass}\n`,
    });
    const nvidia = Array.from({ length: 8 }, (_, at) => card(`0000:${at + 10}:00.0`, "0x10de", "0x030200"));
    planted = await plantMachine({
      programs: { "rocm-smi": MI250_FACTS, "nvidia-smi": H100_FACTS },
      files: Object.assign(
        {},
        ...nvidia,
        card("0000:30:00.0", "0x10de", "0x040300"),
        card("0000:31:00.0", "0x1002", "0x038000"),
      ),
    });
    const reader = createGpuReader(planted.machine);
    const indices = async () => (await reader.read()).map(({ index }) => index);
    expect(await indices()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    planted.answer("nvidia-smi", { kind: "finished", exitCode: 9, stdout: NO_DRIVER });
    expect(await indices()).toEqual([8, 9]);
  });

  it("should find nvidia-smi where Windows puts it", async () => {
    planted = await plantMachine({ programs: { "/usr/lib/wsl/lib/nvidia-smi": H100_FACTS } });
    expect(await createGpuReader(planted.machine).read()).toHaveLength(8);
  });

  it("should repeat the last answer while the tool hangs, and believe it when it answers", async () => {
    planted = await plantMachine({ programs: { "nvidia-smi": H100_FACTS } });
    const reader = createGpuReader(planted.machine);
    const first = await reader.read();
    planted.answer("nvidia-smi", HANGS);
    expect(await reader.read()).toEqual(first);
    planted.answer("nvidia-smi", { kind: "finished", exitCode: 9, stdout: NO_DRIVER });
    expect(await reader.read()).toEqual([]);
    planted.answer("nvidia-smi", HANGS);
    expect(await reader.read()).toEqual([]);
  });

  it("should know no GPU where there is no tool", async () => {
    planted = await plantMachine();
    expect(await createGpuReader(planted.machine).read()).toEqual([]);
  });
});
