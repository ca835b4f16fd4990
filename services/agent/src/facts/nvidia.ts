import { parseCount } from "../machine/parse-text.ts";
import type { GpuFacts } from "./machine-facts.ts";
import { parsePciAddress } from "./pci.ts";

/** Where to look for nvidia-smi: in the PATH, and where the Windows Subsystem for Linux installs it. */
export const NVIDIA_PROGRAMS = ["nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"] as const;

const FACTS = ["index", "name", "uuid", "driver_version", "pci.bus_id", "memory.total"] as const;

/** The arguments that make nvidia-smi print what `parseNvidiaFacts` reads. */
export const NVIDIA_FACTS_ARGS = queryArgs([...FACTS, "mig.mode.current"]);

/** Like NVIDIA_FACTS_ARGS, for drivers before 450, which do not support MIG and refuse a query that names it. */
export const OLDER_NVIDIA_FACTS_ARGS = queryArgs(FACTS);

/** The form of an id as the driver prints it. A GPU that has failed has "ERR!" or "[Unknown Error]" instead. */
const UUID = /^GPU-[0-9a-f-]{8,}$/i;

/** The arguments that make nvidia-smi print one line per GPU with these fields. */
export function queryArgs(fields: readonly string[]): readonly string[] {
  return [`--query-gpu=${fields.join(",")}`, "--format=csv,noheader,nounits"];
}

/**
 * Parse the lines of a query. Lines that do not start with an index are messages (`No devices were found`, `Unable
 * to determine the device handle ...`) and are skipped. Fields that a GPU does not have, written `[N/A]`, `[Not
 * Supported]`, `[Insufficient Permissions]` and the like, are `undefined`.
 */
export function parseNvidiaRows(stdout: string, fieldCount: number): readonly (readonly (string | undefined)[])[] {
  return stdout
    .split("\n")
    .map((line) => line.split(",").map((field) => parseField(field)))
    .filter((row) => row.length === fieldCount && parseCount(row[0]) !== undefined);
}

/** Parse the output for `NVIDIA_FACTS_ARGS` or `OLDER_NVIDIA_FACTS_ARGS`. Returns the GPUs, ordered by index. */
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
        unusable: hasId ? (mig === "Enabled" ? IN_MIG_MODE : "") : "its driver reports no id: the GPU may have failed",
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
