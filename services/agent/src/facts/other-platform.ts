import type { Machine } from "../machine/machine.ts";
import { isLasting, parseMac } from "./interfaces.ts";
import type { Reported } from "./last-known.ts";
import type { InterfaceFacts, MachineFacts } from "./machine-facts.ts";

/** The part of systeminformation that this file uses. */
interface SystemInformation {
  osInfo(): Promise<{ readonly distro: string; readonly release: string }>;
  cpu(): Promise<{
    readonly manufacturer: string;
    readonly brand: string;
    readonly processors: number;
    readonly physicalCores: number;
    readonly cores: number;
  }>;
  mem(): Promise<{ readonly total: number; readonly available: number }>;
}

/** Loads systeminformation; resolves to undefined if it cannot be loaded. */
export type LoadSystemInformation = () => Promise<SystemInformation | undefined>;

/** Load systeminformation on first use, because it is large, and a Linux machine never needs it. */
export const loadSystemInformation: LoadSystemInformation = async () => {
  try {
    return (await import("systeminformation")).default;
  } catch {
    // Without the library, the report contains only what Node.js knows.
    return undefined;
  }
};

/** Read the facts of a machine without /proc and /sys (macOS). NUMA nodes and GPUs are not read. */
export async function readOtherPlatform(
  machine: Machine,
  disk: Reported<number>,
  load: LoadSystemInformation = loadSystemInformation,
): Promise<MachineFacts> {
  const information = await load();
  const [os, cpu] = await Promise.all([
    information?.osInfo().catch(() => undefined),
    information?.cpu().catch(() => undefined),
  ]);
  const { system } = machine;
  const threads = cpu?.cores || system.parallelism();
  return {
    hostname: system.hostname(),
    operatingSystem: {
      family: system.platform,
      name: os ? `${os.distro} ${os.release}`.trim() : undefined,
      kernel: system.kernel,
      architecture: system.architecture,
    },
    cpu: {
      model: cpu ? `${cpu.manufacturer} ${cpu.brand}`.trim() : undefined,
      sockets: cpu?.processors || 1,
      cores: cpu?.physicalCores || threads,
      threads,
      usableMillis: threads * 1000,
    },
    memoryBytes: system.totalMemoryBytes(),
    diskBytes: disk.value,
    numaNodes: [],
    gpus: [],
    vm: { capable: false, message: `KVM is not available on ${system.platform}`, nested: false },
    vfioGpus: [],
    interfaces: interfacesOf(machine),
    unknown: disk.unknown === null ? [] : [disk.unknown],
  };
}

function interfacesOf(machine: Machine): readonly InterfaceFacts[] {
  // Report only IPv4 addresses, because this platform does not show whether an IPv6 address is
  // temporary.
  const addresses = machine.system
    .addresses()
    .filter(({ address, internal }) => !internal && !address.includes(":") && isLasting(address));
  const names = [...new Set(addresses.map(({ interfaceName }) => interfaceName))].sort();
  return names.map((name) => {
    const own = addresses.filter(({ interfaceName }) => interfaceName === name);
    return {
      name,
      mac: parseMac(own[0]?.mac),
      addresses: own.map(({ cidr }) => cidr).sort(),
      speedMbps: undefined,
    };
  });
}
