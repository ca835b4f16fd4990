import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine, type RecordedMachine } from "../testing/machine-tree.ts";
import { readBootId, readMachineFingerprint } from "./machine-identity.ts";

const planted: PlantedMachine[] = [];
async function plant(recorded: RecordedMachine) {
  const it = await plantMachine(recorded);
  planted.push(it);
  return it.machine;
}
afterEach(async () => {
  await Promise.all(planted.splice(0).map((it) => it.remove()));
});

const machineWith = (mac: string, productId: string): RecordedMachine => ({
  files: {
    "/etc/machine-id": "d1c2\n",
    "/sys/class/dmi/id/product_uuid": productId,
    "/sys/class/net/eth0/address": `${mac}\n`,
    "/sys/class/net/eth0/addr_assign_type": "0\n",
    "/sys/class/net/veth0/address": `${Math.random()}\n`,
    "/sys/class/net/veth0/addr_assign_type": "3\n",
  },
  links: { "/sys/class/net/eth0/device": "../../../0000:00:03.0" },
});

describe("readMachineFingerprint()", () => {
  it("should stay the same on one machine whichever containers run", async () => {
    const [one, again] = [await plant(machineWith("a", "x")), await plant(machineWith("a", "x"))];
    expect(await readMachineFingerprint(one)).toBe(await readMachineFingerprint(again));
  });

  it.each([
    ["network card", machineWith("b", "x")],
    ["firmware", machineWith("a", "y")],
  ])("should distinguish a copy of the disk by its %s", async (_, copy) => {
    const [original, other] = [await plant(machineWith("a", "x")), await plant(copy)];
    expect(await readMachineFingerprint(original)).not.toBe(await readMachineFingerprint(other));
  });

  it("should have a fingerprint even of a machine without any identifiers", async () => {
    expect(await readMachineFingerprint(await plant({}))).toHaveLength(43);
  });
});

describe("readBootId()", () => {
  it("should use the kernel's boot id", async () => {
    const machine = await plant({ files: { "/proc/sys/kernel/random/boot_id": "b-1\n" } });
    expect(await readBootId(machine)).toBe("b-1");
  });

  it("should use sysctl on a Mac", async () => {
    expect(await readBootId(await plant({ programs: { sysctl: "B-2\n" } }))).toBe("B-2");
  });

  it("should create one if the machine has none", async () => {
    const machine = await plant({});
    expect(await readBootId(machine)).not.toBe(await readBootId(machine));
  });
});
