import type { Machine } from "../machine/machine.ts";
import { askProgram, type CommandResult } from "../machine/run-command.ts";
import type { GpuFacts } from "./machine-facts.ts";
import { NVIDIA_FACTS_ARGS, NVIDIA_PROGRAMS, OLDER_NVIDIA_FACTS_ARGS, parseNvidiaFacts } from "./nvidia.ts";
import { firstAmdIndex, hasDeviceOf, PCI_ROOT } from "./pci.ts";
import { parseRocmFacts, ROCM_FACTS_ARGS, ROCM_PROGRAMS } from "./rocm.ts";

/** What a probe found, or why it could not find it out. */
export type Probed<T> =
  | { readonly kind: "known"; readonly value: T }
  | { readonly kind: "unknown"; readonly reason: string };

type ProbedGpus = Probed<readonly GpuFacts[]>;

/**
 * Ask NVIDIA's tool for its GPUs. It is believed when it names GPUs, and when it names none and the bus has none. One
 * that hangs, fails or is missing while the bus has a device of NVIDIA's with their driver says nothing.
 */
export async function probeNvidia(machine: Machine): Promise<ProbedGpus> {
  let result = await askProgram(machine, NVIDIA_PROGRAMS, NVIDIA_FACTS_ARGS);
  if (result.kind === "finished" && isUnknownField(result.stdout)) {
    result = await askProgram(machine, NVIDIA_PROGRAMS, OLDER_NVIDIA_FACTS_ARGS);
  }
  return judge("nvidia-smi", result, parseNvidiaFacts, () => mayHaveNvidia(machine, result));
}

/** Ask AMD's tool for its GPUs, by its own indices. */
export async function probeRocm(machine: Machine): Promise<ProbedGpus> {
  const result = await askProgram(machine, ROCM_PROGRAMS, ROCM_FACTS_ARGS);
  return judge("rocm-smi", result, parseRocmFacts, () => mayHaveAmd(machine, result));
}

/**
 * The GPUs of both vendors, by the index that NVIDIA's tool gives them, then AMD's. In a machine with GPUs of both,
 * AMD's follow on: their index is their tool's plus the number of NVIDIA's on the bus.
 */
export async function inOneOrder(
  machine: Machine,
  nvidia: readonly GpuFacts[],
  amd: readonly GpuFacts[],
): Promise<readonly GpuFacts[]> {
  if (amd.length === 0) return nvidia;
  const first = await firstAmdIndex(machine);
  return [...nvidia, ...amd.map((gpu) => ({ ...gpu, index: first + gpu.index }))];
}

async function judge(
  tool: string,
  result: CommandResult,
  parse: (stdout: string) => readonly GpuFacts[],
  mayHaveGpu: () => Promise<boolean>,
): Promise<ProbedGpus> {
  switch (result.kind) {
    case "no-answer":
      return { kind: "unknown", reason: `${tool} gave no answer (${CAUSES[result.cause]})` };
    case "missing":
      return (await mayHaveGpu())
        ? { kind: "unknown", reason: `${tool} is not installed, and the machine has a GPU that it is for` }
        : { kind: "known", value: [] };
    case "finished": {
      const value = parse(result.stdout);
      if (value.length > 0 || !(await mayHaveGpu())) return { kind: "known", value };
      const said = result.stdout.trim().split("\n")[0] ?? "";
      const words = said === "" ? "and said nothing" : `and said: ${said.slice(0, 120)}`;
      return { kind: "unknown", reason: `${tool} named no GPU, ended with ${result.exitCode} ${words}` };
    }
  }
}

/** nvidia-smi's exit code for "No devices were found". */
const FOUND_NONE = 6;

/**
 * Whether the machine may have a GPU of NVIDIA's although their tool names none: the bus has one with their driver, or
 * the tool failed and the bus cannot be seen, as in some containers.
 */
export async function mayHaveNvidia(machine: Machine, result: CommandResult): Promise<boolean> {
  if (await hasDeviceOf(machine, "nvidia")) return true;
  const hasFailed = result.kind === "finished" && result.exitCode !== 0 && result.exitCode !== FOUND_NONE;
  return hasFailed && (await machine.listNames(PCI_ROOT)).length === 0;
}

/**
 * Whether the machine may have a GPU of AMD's although their tool names none: it failed, and the bus has one with their
 * driver. Many machines with a small GPU of AMD's do not have the tool, or one that names none and exits with 0.
 */
export async function mayHaveAmd(machine: Machine, result: CommandResult): Promise<boolean> {
  return result.kind === "finished" && result.exitCode !== 0 && (await hasDeviceOf(machine, "amdgpu"));
}

const CAUSES = {
  timeout: "too slow",
  overflow: "too long",
  busy: "an earlier call of it hangs",
  "not-started": "it could not be started",
} as const;

function isUnknownField(stdout: string): boolean {
  return /not a valid field/i.test(stdout);
}
