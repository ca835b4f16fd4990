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
