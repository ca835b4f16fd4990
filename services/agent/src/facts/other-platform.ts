import type { Machine } from "../machine/machine.ts";
import { isLasting, parseMac } from "./interfaces.ts";
import type { InterfaceFacts, MachineFacts } from "./machine-facts.ts";

/** The part of systeminformation that is used here. */
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

/** Loads systeminformation, or says that it cannot be loaded. */
export type LoadSystemInformation = () => Promise<SystemInformation | undefined>;

/** Load systeminformation on first use: it is large, and a Linux machine never needs it. */
export const loadSystemInformation: LoadSystemInformation = async () => {
  try {
    return (await import("systeminformation")).default;
  } catch {
    // The report then says what Node itself knows.
    return undefined;
  }
};

/** Read what a machine without /proc and /sys is (macOS). It has no NUMA nodes and no GPU that a tool would tell of. */
export async function readOtherPlatform(
  machine: Machine,
  stateDirectory: string,
  load: LoadSystemInformation = loadSystemInformation,
): Promise<MachineFacts> {
  const information = await load();
  const [os, cpu, disk] = await Promise.all([
    information?.osInfo().catch(() => undefined),
    information?.cpu().catch(() => undefined),
    machine.fileSystemSize(stateDirectory),
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
    diskBytes: disk?.totalBytes,
    numaNodes: [],
    gpus: [],
    vm: { capable: false, message: `there is no KVM on ${system.platform}`, nested: false },
    vfioGpus: [],
    interfaces: interfacesOf(machine),
    unknown: [],
  };
}

function interfacesOf(machine: Machine): readonly InterfaceFacts[] {
  // Which IPv6 addresses are temporary is unknown here, so only IPv4 ones are reported.
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
