import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { GPU_SERVER, LAPTOP, RASPBERRY_PI, VIRTUAL_MACHINE } from "../testing/recordings/machines.ts";
import { readVm } from "./vm.ts";

describe("readVm()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it.each([
    ["a server", GPU_SERVER, { capable: true, message: "", nested: true }],
    ["a laptop", LAPTOP, { capable: true, message: "", nested: true }],
    [
      "a virtual machine",
      VIRTUAL_MACHINE,
      {
        capable: false,
        message: "the processor has no virtualization extension, or the firmware or hypervisor hides it",
        nested: false,
      },
    ],
    [
      "a Raspberry Pi without the module",
      RASPBERRY_PI,
      {
        capable: false,
        message: "/dev/kvm does not exist: the kernel's kvm module is not loaded",
        nested: false,
      },
    ],
  ])("should read %s", async (_, recorded, vm) => {
    planted = await plantMachine(recorded);
    expect(await readVm(planted.machine)).toEqual(vm);
  });

  it("should say so if the device exists but access is denied", async () => {
    planted = await plantMachine(GPU_SERVER);
    const machine = { ...planted.machine, canUse: async () => false };
    expect(await readVm(machine)).toEqual({
      capable: false,
      message: "/dev/kvm exists, but the agent's user cannot open it",
      nested: false,
    });
  });
});
