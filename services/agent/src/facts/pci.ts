import type { Machine } from "../machine/machine.ts";
import { parseCount } from "../machine/parse-text.ts";
import type { VfioGpuFacts } from "./machine-facts.ts";

/** Where the kernel lists PCI devices. */
export const PCI_ROOT = "/sys/bus/pci/devices";
const NVIDIA_VENDOR = "0x10de";

/**
 * Convert a PCI address from the form of a vendor's tool (`00000000:1B:00.0`) to that of sysfs (`0000:1b:00.0`).
 */
export function parsePciAddress(text: string | undefined): string | undefined {
  const [, domain, rest] = /^([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i.exec(text?.trim() ?? "") ?? [];
  if (domain === undefined || rest === undefined) return undefined;
  return `${domain.replace(/^0+(?=.{4})/, "")}:${rest}`.toLowerCase();
}

/** Read the display and 3D controllers that are bound to vfio-pci, ordered by PCI address. */
export async function readVfioGpus(machine: Machine): Promise<readonly VfioGpuFacts[]> {
  const addresses = await machine.listNames(PCI_ROOT);
  const gpus = await Promise.all(addresses.map((address) => readVfioGpu(machine, address)));
  return gpus.filter((gpu) => gpu !== undefined);
}

/** Whether the bus has a display controller that uses this driver. */
export async function hasDeviceOf(machine: Machine, driver: "nvidia" | "amdgpu"): Promise<boolean> {
  const addresses = await machine.listNames(PCI_ROOT);
  const found = await Promise.all(
    addresses.map(async (address) => {
      const at = `${PCI_ROOT}/${address}`;
      if ((await machine.linkName(`${at}/driver`)) !== driver) return false;
      return (await machine.readText(`${at}/class`))?.startsWith("0x03") ?? false;
    }),
  );
  return found.some(Boolean);
}

/**
 * The number of indices that NVIDIA's GPUs take. AMD's indices follow, so that each index is used only once. The
 * number comes from the bus, not from a driver, so that indices do not change when one vendor's tool fails.
 */
export async function firstAmdIndex(machine: Machine): Promise<number> {
  const addresses = await machine.listNames(PCI_ROOT);
  const found = await Promise.all(
    addresses.map(async (address) => {
      const at = `${PCI_ROOT}/${address}`;
      if ((await machine.readText(`${at}/vendor`))?.trim() !== NVIDIA_VENDOR) return false;
      return (await machine.readText(`${at}/class`))?.startsWith("0x03") ?? false;
    }),
  );
  return found.filter(Boolean).length;
}

async function readVfioGpu(machine: Machine, pciAddress: string): Promise<VfioGpuFacts | undefined> {
  const at = `${PCI_ROOT}/${pciAddress}`;
  if ((await machine.linkName(`${at}/driver`)) !== "vfio-pci") return undefined;
  const pciClass = await machine.readText(`${at}/class`);
  if (!pciClass?.startsWith("0x03")) return undefined;
  const [vendor, device, group] = await Promise.all([
    machine.readText(`${at}/vendor`),
    machine.readText(`${at}/device`),
    machine.linkName(`${at}/iommu_group`),
  ]);
  return {
    pciAddress,
    vendorId: vendor?.replace(/^0x/, ""),
    deviceId: device?.replace(/^0x/, ""),
    iommuGroup: parseCount(group),
  };
}
