import { askProgram } from "../machine/ask-program.ts";
import type { Machine } from "../machine/machine.ts";
import type { GpuFacts } from "./machine-facts.ts";
import { NVIDIA_FACTS_ARGS, NVIDIA_PROGRAMS, parseNvidiaFacts } from "./nvidia.ts";
import { parseRocmFacts, ROCM_FACTS_ARGS, ROCM_PROGRAMS } from "./rocm.ts";

/** Reads the GPUs through the vendors' tools. */
export interface GpuReader {
  /** NVIDIA's GPUs, then AMD's, each by index. */
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
  const tools = [
    vendorTool(machine, NVIDIA_PROGRAMS, NVIDIA_FACTS_ARGS, parseNvidiaFacts),
    vendorTool(machine, ROCM_PROGRAMS, ROCM_FACTS_ARGS, parseRocmFacts),
  ];
  return {
    read: async () => (await Promise.all(tools.map((ask) => ask()))).flat(),
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
