import { parseCount } from "../machine/parse-text.ts";
import type { GpuFacts } from "./machine-facts.ts";
import { parsePciAddress } from "./pci.ts";

/** Where nvidia-smi is found: by name, and where Windows puts it into its Linux subsystem. */
export const NVIDIA_PROGRAMS = ["nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"] as const;

/** What asks nvidia-smi for the facts that `parseNvidiaFacts` reads. */
export const NVIDIA_FACTS_ARGS = queryArgs(["index", "name", "uuid", "driver_version", "pci.bus_id", "memory.total"]);

/** The arguments that make nvidia-smi print one line a GPU with these fields. */
export function queryArgs(fields: readonly string[]): readonly string[] {
  return [`--query-gpu=${fields.join(",")}`, "--format=csv,noheader,nounits"];
}

/**
 * Parse the lines of a query. Lines that do not begin with an index are messages (`No devices were found`,
 * `Unable to determine the device handle ...`) and are left out. Fields that a GPU does not have, written
 * `[N/A]`, `[Not Supported]`, `[Insufficient Permissions]` and the like, are `undefined`.
 */
export function parseNvidiaRows(stdout: string, fieldCount: number): readonly (readonly (string | undefined)[])[] {
  return stdout
    .split("\n")
    .map((line) => line.split(",").map((field) => parseField(field)))
    .filter((row) => row.length === fieldCount && parseCount(row[0]) !== undefined);
}

/** Parse the answer to `NVIDIA_FACTS_ARGS`, by index. */
export function parseNvidiaFacts(stdout: string): readonly GpuFacts[] {
  return parseNvidiaRows(stdout, 6)
    .map(
      ([index, name, uuid, driverVersion, bus, memory]): GpuFacts => ({
        vendor: "NVIDIA",
        index: Number(index),
        name,
        uuid,
        driverVersion,
        pciAddress: parsePciAddress(bus),
        memoryMib: parseCount(memory),
      }),
    )
    .sort((a, b) => a.index - b.index);
}

function parseField(text: string): string | undefined {
  const field = text.trim();
  return field === "" || field === "N/A" || /^\[.*\]$/.test(field) ? undefined : field;
}
