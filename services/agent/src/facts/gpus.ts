import type { Machine } from "../machine/machine.ts";
import { askProgram, type CommandResult } from "../machine/run-command.ts";
import type { GpuFacts } from "./machine-facts.ts";
import { NVIDIA_FACTS_ARGS, NVIDIA_PROGRAMS, OLDER_NVIDIA_FACTS_ARGS, parseNvidiaFacts } from "./nvidia.ts";
import { firstAmdIndex, hasDeviceOf, PCI_ROOT } from "./pci.ts";
import { parseRocmFacts, ROCM_FACTS_ARGS, ROCM_PROGRAMS } from "./rocm.ts";

/** The value that a probe found, or why the probe failed. */
export type Probed<T> =
  | { readonly kind: "known"; readonly value: T }
  | { readonly kind: "unknown"; readonly reason: string };

type ProbedGpus = Probed<readonly GpuFacts[]>;

/**
 * Query NVIDIA's tool for its GPUs. The output is accepted if it lists GPUs, or if neither the output nor the bus has
 * any. If the tool hangs, fails or is missing while the bus has a device that uses NVIDIA's driver, the result is
 * unknown.
 */
export async function probeNvidia(machine: Machine): Promise<ProbedGpus> {
  let result = await askProgram(machine, NVIDIA_PROGRAMS, NVIDIA_FACTS_ARGS);
  if (result.kind === "finished" && isUnknownField(result.stdout)) {
    result = await askProgram(machine, NVIDIA_PROGRAMS, OLDER_NVIDIA_FACTS_ARGS);
  }
  return evaluate("nvidia-smi", result, parseNvidiaFacts, () => mayHaveNvidia(machine, result));
}

/** Query AMD's tool for its GPUs. Their indices are the tool's own. */
export async function probeRocm(machine: Machine): Promise<ProbedGpus> {
  const result = await askProgram(machine, ROCM_PROGRAMS, ROCM_FACTS_ARGS);
  return evaluate("rocm-smi", result, parseRocmFacts, () => mayHaveAmd(machine, result));
}

/**
 * Merge the GPUs of both vendors: NVIDIA's by their tool's index, then AMD's. In a machine with GPUs of both, the index
 * of an AMD GPU is its tool's index plus the number of NVIDIA GPUs on the bus.
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

async function evaluate(
  tool: string,
  result: CommandResult,
  parse: (stdout: string) => readonly GpuFacts[],
  mayHaveGpu: () => Promise<boolean>,
): Promise<ProbedGpus> {
  switch (result.kind) {
    case "no-answer":
      return { kind: "unknown", reason: `${tool} did not answer (${CAUSES[result.cause]})` };
    case "missing":
      return (await mayHaveGpu())
        ? { kind: "unknown", reason: `${tool} is not installed, but the machine has a GPU that needs it` }
        : { kind: "known", value: [] };
    case "finished": {
      const value = parse(result.stdout);
      if (value.length > 0 || !(await mayHaveGpu())) return { kind: "known", value };
      const said = result.stdout.trim().split("\n")[0] ?? "";
      const words = said === "" ? "without output" : `and printed: ${said.slice(0, 120)}`;
      return { kind: "unknown", reason: `${tool} listed no GPU, exited with ${result.exitCode} ${words}` };
    }
  }
}

/** nvidia-smi's exit code for "No devices were found". */
const FOUND_NONE = 6;

/**
 * Whether the machine may have an NVIDIA GPU although NVIDIA's tool lists none: the bus has a device that uses NVIDIA's
 * driver, or the tool failed and the bus cannot be read, as in some containers.
 */
export async function mayHaveNvidia(machine: Machine, result: CommandResult): Promise<boolean> {
  if (await hasDeviceOf(machine, "nvidia")) return true;
  const hasFailed = result.kind === "finished" && result.exitCode !== 0 && result.exitCode !== FOUND_NONE;
  return hasFailed && (await machine.listNames(PCI_ROOT)).length === 0;
}

/**
 * Whether the machine may have an AMD GPU although AMD's tool lists none: the tool failed, and the bus has a GPU that
 * uses AMD's driver. A missing tool is not a failure, because many machines with a small AMD GPU have no tool, or a
 * tool that lists no GPU and exits with 0.
 */
export async function mayHaveAmd(machine: Machine, result: CommandResult): Promise<boolean> {
  return result.kind === "finished" && result.exitCode !== 0 && (await hasDeviceOf(machine, "amdgpu"));
}

const CAUSES = {
  timeout: "it took too long",
  overflow: "its output is too long",
  busy: "an earlier call still hangs",
  "not-started": "it could not be started",
} as const;

function isUnknownField(stdout: string): boolean {
  return /not a valid field/i.test(stdout);
}
