import { mayHaveAmd, mayHaveNvidia } from "../facts/gpus.ts";
import { NVIDIA_PROGRAMS, parseNvidiaRows, queryArgs } from "../facts/nvidia.ts";
import { firstAmdIndex } from "../facts/pci.ts";
import { parseMebibytes, parseRocmAnswer, ROCM_PROGRAMS, type RocmCard } from "../facts/rocm.ts";
import type { Machine } from "../machine/machine.ts";
import { parseCount, parseNumber } from "../machine/parse-text.ts";
import { askProgram } from "../machine/run-command.ts";
import type { GpuReading } from "./machine-usage.ts";

/** The arguments that make nvidia-smi print what `parseNvidiaUsage` reads. */
const NVIDIA_USAGE_ARGS = queryArgs(["index", "utilization.gpu", "memory.used", "memory.total", "temperature.gpu"]);

/** The arguments that make rocm-smi print what `parseRocmUsage` reads. */
const ROCM_USAGE_ARGS = ["--showuse", "--showtemp", "--showmeminfo", "vram", "--json"] as const;

/** Read NVIDIA's GPUs; `undefined` if they cannot be determined, as in probeNvidia(). */
export async function readNvidiaUsage(machine: Machine): Promise<readonly GpuReading[] | undefined> {
  const result = await askProgram(machine, NVIDIA_PROGRAMS, NVIDIA_USAGE_ARGS);
  const readings = result.kind === "finished" ? parseNvidiaUsage(result.stdout) : [];
  if (result.kind === "no-answer") return undefined;
  return readings.length > 0 || !(await mayHaveNvidia(machine, result)) ? readings : undefined;
}

/** Read AMD's GPUs, numbered after NVIDIA's by firstAmdIndex(); `undefined` if they cannot be determined. */
export async function readRocmUsage(machine: Machine): Promise<readonly GpuReading[] | undefined> {
  const result = await askProgram(machine, ROCM_PROGRAMS, ROCM_USAGE_ARGS);
  if (result.kind === "missing") return [];
  if (result.kind === "no-answer") return undefined;
  const readings = parseRocmUsage(result.stdout);
  if (readings.length === 0) return (await mayHaveAmd(machine, result)) ? undefined : readings;
  const first = await firstAmdIndex(machine);
  return readings.map((reading) => ({ ...reading, index: first + reading.index }));
}

/** Parse the output for `NVIDIA_USAGE_ARGS`. Returns the GPUs, ordered by index. */
export function parseNvidiaUsage(stdout: string): readonly GpuReading[] {
  return parseNvidiaRows(stdout, 5)
    .map(([index, utilization, used, total, temperature]) => ({
      index: Number(index),
      utilizationPercent: parseCount(utilization),
      memoryUsedMib: parseCount(used),
      memoryTotalMib: parseCount(total),
      temperatureCelsius: parseNumber(temperature),
    }))
    .sort((a, b) => a.index - b.index);
}

/** Parse the output for `ROCM_USAGE_ARGS`. Returns the GPUs, ordered by index. */
export function parseRocmUsage(stdout: string): readonly GpuReading[] {
  return parseRocmAnswer(stdout).cards.map(({ index, values }) => ({
    index,
    utilizationPercent: parseNumber(values.get("gpu use (%)")),
    memoryUsedMib: parseMebibytes(values.get("vram total used memory (b)")),
    memoryTotalMib: parseMebibytes(values.get("vram total memory (b)")),
    temperatureCelsius: cardTemperature(values),
  }));
}

/** The hot spot if it has a sensor, because it causes throttling; else the edge of the chip. */
function cardTemperature(values: RocmCard): number | undefined {
  return (
    parseNumber(values.get("temperature (sensor junction) (c)")) ??
    parseNumber(values.get("temperature (sensor edge) (c)"))
  );
}
