import { createHash, randomUUID } from "node:crypto";
import type { Machine } from "./machine.ts";

/** The id of this boot of the machine. Where the kernel tells none, one that lasts as long as this process. */
export async function readBootId(machine: Machine): Promise<string> {
  const linux = await machine.readText("/proc/sys/kernel/random/boot_id");
  if (linux) return linux;
  const mac = await machine.run("sysctl", ["-n", "kern.bootsessionuuid"]);
  const text = mac.kind === "finished" && mac.exitCode === 0 ? mac.stdout.trim() : "";
  return text || randomUUID();
}

/**
 * A text that two machines do not share although one is a copy of the other's disk: a hash of what the firmware
 * and the network hardware say, with the system's own id. It tells nothing about the machine itself.
 */
export async function readMachineFingerprint(machine: Machine): Promise<string> {
  const [machineId, productId, interfaces] = await Promise.all([
    machine.readText("/etc/machine-id"),
    // Readable for root alone; others are told apart by their hardware addresses.
    machine.readText("/sys/class/dmi/id/product_uuid"),
    readHardwareAddresses(machine),
  ]);
  const parts = [machineId ?? "", productId ?? "", ...interfaces];
  return createHash("sha256").update(parts.join("\n")).digest("base64url");
}

/** Addresses that the hardware came with (NET_ADDR_PERM is 0), in order; without those that were made up. */
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
