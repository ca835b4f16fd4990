import { createHash, randomUUID } from "node:crypto";
import type { Machine } from "./machine.ts";

/**
 * The id of this boot of the machine. If the kernel provides none, an id that lasts as long as this process.
 */
export async function readBootId(machine: Machine): Promise<string> {
  const linux = await machine.readText("/proc/sys/kernel/random/boot_id");
  if (linux) return linux;
  const mac = await machine.run("sysctl", ["-n", "kern.bootsessionuuid"]);
  const text = mac.kind === "finished" && mac.exitCode === 0 ? mac.stdout.trim() : "";
  return text || randomUUID();
}

/**
 * A hash that differs between two machines even if their disks are copies of each other. It covers
 * identifiers of the firmware and the network hardware and the system's own id, and reveals none of them.
 */
export async function readMachineFingerprint(machine: Machine): Promise<string> {
  const [machineId, productId, interfaces] = await Promise.all([
    machine.readText("/etc/machine-id"),
    // Only root can read this file. For other users, only hardware addresses tell machines apart.
    machine.readText("/sys/class/dmi/id/product_uuid"),
    readHardwareAddresses(machine),
  ]);
  const parts = [machineId ?? "", productId ?? "", ...interfaces];
  return createHash("sha256").update(parts.join("\n")).digest("base64url");
}

/** Permanent hardware addresses (NET_ADDR_PERM is 0), sorted, without generated ones. */
async function readHardwareAddresses(machine: Machine): Promise<readonly string[]> {
  const names = await machine.listNames("/sys/class/net");
  const addresses = await Promise.all(
    names.map(async (name) => {
      const at = `/sys/class/net/${name}`;
      const [address, kind, device] = await Promise.all([
        machine.readText(`${at}/address`),
        machine.readText(`${at}/addr_assign_type`),
        machine.linkName(`${at}/device`),
      ]);
      return kind === "0" && device !== undefined && address ? address : undefined;
    }),
  );
  return addresses.filter((address) => address !== undefined).sort();
}
