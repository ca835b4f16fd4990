import type { Machine } from "../machine/machine.ts";
import { askProgram } from "../machine/run-command.ts";
import type { GpuFacts } from "./machine-facts.ts";
import { NVIDIA_FACTS_ARGS, NVIDIA_PROGRAMS, parseNvidiaFacts } from "./nvidia.ts";
import { firstAmdIndex } from "./pci.ts";
import { parseRocmFacts, ROCM_FACTS_ARGS, ROCM_PROGRAMS } from "./rocm.ts";

/** Reads the GPUs through the vendors' tools. */
export interface GpuReader {
  /**
   * NVIDIA's GPUs, by the index that their tool gives them, then AMD's. In a machine with GPUs of both, AMD's follow
   * on: their index is their tool's plus the number of NVIDIA's on the bus.
   */
  read(): Promise<readonly GpuFacts[]>;
}

/**
 * Create a reader of GPUs.
 *
 * It remembers each tool's last answer and repeats it while the tool hangs: a GPU whose driver is stuck is
 * still in the machine, and the record must not lose its hardware because a tool was slow. A tool that
 * answers with fewer GPUs, or is gone, is believed.
 */
export function createGpuReader(machine: Machine): GpuReader {
  const askNvidia = vendorTool(machine, NVIDIA_PROGRAMS, NVIDIA_FACTS_ARGS, parseNvidiaFacts);
  const askRocm = vendorTool(machine, ROCM_PROGRAMS, ROCM_FACTS_ARGS, parseRocmFacts);
  return {
    read: async () => {
      const [nvidia, amd] = await Promise.all([askNvidia(), askRocm()]);
      if (amd.length === 0) return nvidia;
      const first = await firstAmdIndex(machine);
      return [...nvidia, ...amd.map((gpu) => ({ ...gpu, index: first + gpu.index }))];
    },
  };
}

function vendorTool(
  machine: Machine,
  programs: readonly string[],
  args: readonly string[],
  parse: (stdout: string) => readonly GpuFacts[],
): () => Promise<readonly GpuFacts[]> {
  let last: readonly GpuFacts[] = [];
  return async () => {
    const result = await askProgram(machine, programs, args);
    switch (result.kind) {
      case "missing":
        last = [];
        break;
      case "no-answer":
        break;
      case "finished":
        last = parse(result.stdout);
        break;
    }
    return last;
  };
}
