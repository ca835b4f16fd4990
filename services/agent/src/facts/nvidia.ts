import { parseCount } from "../machine/parse-text.ts";
import type { GpuFacts } from "./machine-facts.ts";
import { parsePciAddress } from "./pci.ts";

/** Where nvidia-smi is found: by name, and where Windows puts it into its Linux subsystem. */
export const NVIDIA_PROGRAMS = ["nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"] as const;

const FACTS = ["index", "name", "uuid", "driver_version", "pci.bus_id", "memory.total"] as const;

/** What asks nvidia-smi for the facts that `parseNvidiaFacts` reads. */
export const NVIDIA_FACTS_ARGS = queryArgs([...FACTS, "mig.mode.current"]);

/** The same for drivers before 450, which know no MIG and refuse a query that names it. */
export const OLDER_NVIDIA_FACTS_ARGS = queryArgs(FACTS);

/** An id as the driver has it. A GPU that has failed tells "ERR!" or "[Unknown Error]" in its place. */
const UUID = /^GPU-[0-9a-f-]{8,}$/i;

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

/** Parse the answer to `NVIDIA_FACTS_ARGS` or `OLDER_NVIDIA_FACTS_ARGS`, by index. */
export function parseNvidiaFacts(stdout: string): readonly GpuFacts[] {
  return [...parseNvidiaRows(stdout, FACTS.length + 1), ...parseNvidiaRows(stdout, FACTS.length)]
    .map(([index, name, uuid, driverVersion, bus, memory, mig]): GpuFacts => {
      const hasId = uuid !== undefined && UUID.test(uuid);
      return {
        vendor: "NVIDIA",
        index: Number(index),
        name: told(name),
        uuid: hasId ? uuid : undefined,
        driverVersion: told(driverVersion),
        pciAddress: parsePciAddress(bus),
        memoryMib: parseCount(memory),
        unusable: hasId ? (mig === "Enabled" ? IN_MIG_MODE : "") : "its driver tells no id: it may have failed",
      };
    })
    .sort((a, b) => a.index - b.index);
}

const IN_MIG_MODE = "it is in MIG mode, and its instances are not offered: turn MIG off to offer the whole GPU";

function told(text: string | undefined): string | undefined {
  return text === "ERR!" ? undefined : text;
}

function parseField(text: string): string | undefined {
  const field = text.trim();
  return field === "" || field === "N/A" || /^\[.*\]$/.test(field) ? undefined : field;
}
